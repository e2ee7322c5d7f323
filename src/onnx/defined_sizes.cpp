#include "onnx/defined_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "ir/defined_symbols.hpp"
#include "ir/dim_values.hpp"
#include "onnx/shape_inputs.hpp"
#include "ops/cast.hpp"
#include "ops/is_a.hpp"
#include "ops/read_sizes.hpp"
#include "ops/registry.hpp"

namespace opfuse::onnx {
namespace {

/// A name that needs no quotes where types are printed.
std::string plain(std::string name) {
  const auto last = std::find_if(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  name.erase(name.begin(), last);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

std::string result_name(const NodeImport& node) {
  return node.proto.outputs.empty() || node.proto.outputs[0].empty() ? node.source.name
                                                                     : std::string(node.proto.outputs[0]);
}

/// A few integers that neither are constant nor follow from shapes, computed by a node: inputs of the model are given
/// a value where it is compiled (onnx/shape_inputs.hpp).
bool is_computed(const Value* value) {
  if (!value || value->is_constant() || !value->producer || !is_integer(value->type.dtype)) return false;
  if (!value->type.shape.ranked || value->type.shape.rank() > 1) return false;
  const auto count = value->type.shape.elements().constant();
  return count && *count > 0 && *count <= most_dim_values() && !dim_values(*value);
}

/// The whole number that a real number is made of, or null.
Value* whole_number_in(const Value& real) {
  const Node* cast = real.producer && is_a<Cast>(*real.producer) ? real.producer : nullptr;
  return cast && is_integer(cast->input(0)->type.dtype) ? cast->input(0) : nullptr;
}

/// A real end of a range that is computed. Its start and step are whole numbers, so the range ends with the next one.
bool is_computed_end(const NodeImport& node, size_t operand) {
  if (node.proto.op_type != "Range" || operand != 1 || !node.inputs[1]) return false;
  const Value& end = *node.inputs[1];
  if (!is_float(end.type.dtype) || !end.producer || !end.type.shape.ranked || end.type.shape.rank() != 0) return false;
  const Value* whole = whole_number_in(end);
  return whole ? is_computed(whole) : !dim_values(end);
}

/// The read_sizes of a value.
Value* read_here(Graph& graph, Value* value, Node* before, const std::string& name) {
  for (const Use& use : value->uses)
    if (is_a<ReadSizes>(*use.node) && (!before || graph.position(use.node) < graph.position(before)))
      return use.node->output();
  const auto count = static_cast<size_t>(value->type.shape.elements().value());
  const AttrMap attrs{{kDefines, symbols_named(graph, value->name.empty() ? name : value->name, count)}};
  return graph.add_node(op_named("read_sizes"), attrs, {value}, 1, value->producer->sources, before)->output();
}

/// Read as early as may be, so that what follows from shapes on the way stays what it is: of [n, 4] only n is data.
Value* as_sizes(Graph& graph, Value* value, Node* before, const std::string& name) {
  Node* producer = value->producer;
  if (producer->op->dims) {
    for (size_t i = 0; i < producer->inputs.size(); ++i)
      if (is_computed(producer->input(i)))
        graph.set_input(producer, i, as_sizes(graph, producer->input(i), producer, name));
    if (dim_values(*value)) return value;
  }
  return read_here(graph, value, before, name);
}

/// The next whole number as an integer that is read, and a real number again.
Value* whole_end(NodeImport& node, Value* end) {
  const DType dtype = end->type.dtype;
  Value* count = whole_number_in(*end);
  if (!count) count = node.emit("cast", {{"to", DType::i64}}, {node.emit("ceil", {}, {end})[0]})[0];
  return node.emit("cast", {{"to", dtype}}, {as_sizes(node.graph, count, nullptr, result_name(node))})[0];
}

}  // namespace

std::vector<std::string> symbols_named(const Graph& graph, const std::string& value, size_t count) {
  std::vector<std::string> symbols;
  const std::string name = "n_" + plain(value);
  for (size_t k = 0; k < count; ++k)
    symbols.push_back(fresh_symbol(graph, k == 0 ? name : fmt::format("{}_{}", name, k)));
  return symbols;
}

std::vector<std::string> defines_of(const NodeImport& node) { return symbols_named(node.graph, result_name(node), 1); }

const Node* same_node(const NodeImport& node, std::string_view op, const AttrMap& attrs) {
  const Value* x = node.input(0);
  if (!x) return nullptr;
  for (const Use& use : x->uses) {
    const Node& other = *use.node;
    if (!other.is(op) || other.inputs != node.inputs) continue;
    const AttrMap has = other.attr_map();
    const bool same = std::all_of(attrs.begin(), attrs.end(), [&](const auto& a) {
      const AttrValue* value = find(has, a.first);
      return a.first == kDefines || (value && *value == a.second);
    });
    if (same) return &other;
  }
  return nullptr;
}

bool sizes_to_read(const NodeImport& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (is_computed_end(node, i) || (decides_shape(node.proto, i) && is_computed(node.inputs[i]))) return true;
  return false;
}

size_t read_sizes_of_operands(NodeImport& node) {
  const size_t before = node.graph.nodes().size();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (is_computed_end(node, i)) node.inputs[i] = whole_end(node, node.inputs[i]);
    if (decides_shape(node.proto, i) && is_computed(node.inputs[i]))
      node.inputs[i] = as_sizes(node.graph, node.inputs[i], nullptr, result_name(node));
  }
  return node.graph.nodes().size() - before;
}

}  // namespace opfuse::onnx
