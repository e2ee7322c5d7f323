// What lowering does to a graph before it makes a program of it, done to the graph that proofs interpret.
#include "driver/graph_of_launches.hpp"

#include "fusion/images.hpp"
#include "passes/expand_recurrent.hpp"

namespace opfuse {

Graph graph_of_launches(const Graph& fused) {
  Graph graph = unroll_images(fused);
  expand_recurrent(graph);
  return graph;
}

}  // namespace opfuse
