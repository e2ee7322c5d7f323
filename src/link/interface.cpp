#include "link/interface.hpp"

#include "ir/fix_input.hpp"
#include "ops/registry.hpp"

namespace opfuse {

Graph interface_of(const Artifact& artifact) {
  Graph graph;
  for (const auto& [name, value] : artifact.fixed_inputs) {
    graph.add_input(name, value.type());
    fix_input(graph, name, value);
  }
  for (const ArtifactTensor& input : artifact.inputs) {
    Value* value = graph.add_input(input.name, input.type);
    if (input.indexes > 0)
      graph.add_node(ops().find("gather"), AttrMap{}, {graph.add_constant(Tensor(DType::u8, {input.indexes})), value});
  }
  return graph;
}

}  // namespace opfuse
