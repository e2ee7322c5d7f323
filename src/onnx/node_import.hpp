// One ONNX node while it becomes nodes of the Graph.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "ir/graph.hpp"
#include "onnx/tensor_proto.hpp"
#include "onnx/wire.hpp"
#include "opfuse/error.hpp"

namespace opfuse::onnx {

/// What an importer sees: operands, attributes, and the graph to append to. Attribute accessors check the type and
/// remember what was asked for; what nobody asked for is refused in the end (E::unsupported_attribute), so that no
/// attribute is ignored silently.
class NodeImport {
 public:
  NodeImport(Graph& graph, const NodeProto& proto, int64_t opset, std::vector<Value*> inputs, Source source,
             TensorReader& tensors, bool fold, const Limits& limits)
      : graph(graph),
        proto(proto),
        opset(opset),
        inputs(std::move(inputs)),
        source(std::move(source)),
        tensors(tensors),
        limits(limits),
        fold_(fold) {}

  Graph& graph;
  const NodeProto& proto;
  const int64_t opset;
  std::vector<Value*> inputs;  ///< null: absent
  const Source source;
  TensorReader& tensors;
  const Limits& limits;

  Value* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  Value* required(size_t i) const;  ///< E::arity_mismatch
  void require_inputs(size_t least, size_t most) const;

  const Attribute* attribute(std::string_view name);  ///< null: absent
  int64_t integer(std::string_view name, int64_t otherwise);
  double real(std::string_view name, double otherwise);
  std::string text(std::string_view name, std::string otherwise);
  std::optional<std::vector<int64_t>> integers(std::string_view name);
  std::optional<std::vector<double>> reals(std::string_view name);
  std::optional<Tensor> tensor(std::string_view name);
  void ignore(std::string_view name) { seen_.insert(std::string(name)); }
  bool has(std::string_view name) { return attribute(name) != nullptr; }

  Value* constant(Tensor tensor) { return graph.add_constant(std::move(tensor)); }
  Value* integers_constant(const std::vector<int64_t>& values) { return constant(Tensor::from_i64(values)); }

  /// Attributes that the operator declares under ONNX's own names, converted to its types.
  AttrMap declared_attributes(const OpInfo& op);
  /// Appends an operator; folds it when it is shape arithmetic. Returns its results.
  std::vector<Value*> emit(std::string_view op, const AttrMap& attrs, std::vector<Value*> operands, size_t outputs = 1);
  /// Refuses attributes that nothing asked for.
  void check_all_seen() const;
  size_t output_count() const;  ///< up to the last named output

 private:
  Error bad_attribute(std::string_view name, const char* wanted) const;
  std::optional<std::vector<Value*>> folded(const OpInfo& op, const AttrMap& attrs, const std::vector<Value*>& operands,
                                            size_t outputs);
  std::set<std::string, std::less<>> seen_;
  const bool fold_;
};

}  // namespace opfuse::onnx
