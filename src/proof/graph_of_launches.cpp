// What lowering does to a graph before it makes a program of it, done to the graph that proofs interpret.
#include "proof/graph_of_launches.hpp"

#include "passes/expand_recurrent.hpp"
#include "shape/unroll_images.hpp"

namespace opfuse {

Graph graph_of_launches(const Graph& fused) {
  Graph graph = unroll_images(fused);
  expand_recurrent(graph);
  return graph;
}

}  // namespace opfuse
