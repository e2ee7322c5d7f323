// What lowering does to a graph before it makes a program of it, done to the graph that proofs interpret.
#include "proof/graph_of_launches.hpp"

#include "passes/expand_recurrent.hpp"
#include "region/unroll_parts.hpp"

namespace opfuse {

Graph graph_of_launches(const Graph& fused) {
  Graph graph = fused.clone();
  unroll_parts(graph);
  expand_recurrent(graph);
  return graph;
}

}  // namespace opfuse
