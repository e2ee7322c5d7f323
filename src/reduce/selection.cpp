// Builds the graph of a selection from its outputs backwards:
//
//   inputs -> [cut] -> nodes that the outputs need, some replaced by one of their operands -> outputs
//
// Values keep their names, so that data recorded for the whole model fits the part. Values without a name get one.
#include "reduce/selection.hpp"

#include <fmt/core.h>

#include <unordered_map>
#include <unordered_set>

#include "base/fail.hpp"

namespace opfuse {
namespace {

std::string name_of(const Value& value) { return value.name.empty() ? fmt::format("value{}", value.id) : value.name; }

class Builder {
 public:
  Builder(const Graph& from, const Selection& selection) : from_(from), selection_(selection) {
    to_.name = from.name;
    to_.metadata = from.metadata;
    for (const Value* value : from.values()) by_id_[value->id] = value;
  }

  /// The value that stands for `value` when operands are read.
  const Value* resolved(const Value* value) const {
    while (value && !selection_.cuts.contains(value->id)) {
      const auto bypass = selection_.bypassed.find(value->id);
      if (bypass == selection_.bypassed.end() || !value->producer) break;
      value = value->producer->input(bypass->second);
    }
    return value;
  }

  void find_needed() {
    std::vector<const Value*> todo;
    for (const int id : selection_.outputs) todo.push_back(resolved(by_id_.at(id)));
    while (!todo.empty()) {
      const Value* value = todo.back();
      todo.pop_back();
      if (!value || !needed_.insert(value).second || selection_.cuts.contains(value->id) || !value->producer) continue;
      nodes_.insert(value->producer);
      for (const Value* operand : value->producer->inputs) todo.push_back(resolved(operand));
    }
  }

  Graph build() {
    find_needed();
    for (const Value* input : from_.inputs())
      if (needed_.contains(input)) add_input(input);
    for (const Value* value : from_.values()) {
      if (!needed_.contains(value)) continue;
      if (value->is_constant()) made_[value] = to_.add_constant(constant_of(*value), name_of(*value));
      if (value->producer && selection_.cuts.contains(value->id)) add_input(value);
    }
    for (const Node* node : from_.nodes())
      if (nodes_.contains(node)) add_node(*node);
    std::vector<Value*> outputs;
    for (const int id : selection_.outputs) {
      const Value* output = by_id_.at(id);
      outputs.push_back(made_.at(resolved(output)));
      if (output->producer && !outputs.back()->producer) throw fail(E::bad_option, "an output without a node");
    }
    to_.set_outputs(std::move(outputs));
    return std::move(to_);
  }

  const std::unordered_set<const Node*>& nodes() const { return nodes_; }

 private:
  const Graph& from_;
  const Selection& selection_;
  Graph to_;
  std::unordered_map<int, const Value*> by_id_;
  std::unordered_map<const Value*, Value*> made_;
  std::unordered_set<const Value*> needed_;
  std::unordered_set<const Node*> nodes_;

  int64_t extent(int64_t size) const {
    const auto found = selection_.extents.find(size);
    return found == selection_.extents.end() ? size : found->second;
  }

  TensorType smaller(TensorType type) const {
    for (Dim& dim : type.shape.dims) {
      dim = dim.substitute(selection_.symbols);
      if (dim.is_constant()) dim = extent(dim.value());
    }
    return type;
  }

  void add_input(const Value* value) {
    if (value->type.dtype == DType::unknown || !value->type.shape.ranked)
      throw fail(E::unknown_dimension, "{} has no known type", value->name);
    made_[value] = to_.add_input(name_of(*value), smaller(value->type));
  }

  /// The first elements along every axis that shrinks; numbers in small integer constants are extents too.
  Tensor constant_of(const Value& value) const {
    const Tensor& whole = *value.constant;
    std::vector<int64_t> sizes = whole.sizes();
    for (int64_t& size : sizes) size = std::min(size, extent(size));
    Tensor part = sizes == whole.sizes() ? whole : first_elements(whole, sizes);
    if (selection_.plain.contains(value.id)) {
      part = Tensor(part.dtype(), sizes);
      for (int64_t i = 0; i < part.elements(); ++i) part.set_real(i, 0.5);
    }
    if (part.dtype() == DType::i64 && part.elements() <= 8 && !selection_.extents.empty()) {
      part = part.clone();
      for (int64_t i = 0; i < part.elements(); ++i) part.set_integer(i, extent(part.integer(i)));
    }
    return part;
  }

  static Tensor first_elements(const Tensor& whole, const std::vector<int64_t>& sizes) {
    Tensor part(whole.dtype(), sizes);
    const bool real = is_float(whole.dtype());
    for (int64_t i = 0; i < part.elements(); ++i) {
      int64_t rest = i, from = 0, stride = 1;
      for (size_t axis = sizes.size(); axis-- > 0;) {
        from += rest % sizes[axis] * stride;
        rest /= sizes[axis];
        stride *= whole.dim(axis);
      }
      if (real)
        part.set_real(i, whole.real(from));
      else
        part.set_integer(i, whole.integer(from));
    }
    return part;
  }

  void add_node(const Node& node) {
    std::vector<Value*> operands;
    for (const Value* operand : node.inputs) operands.push_back(operand ? made_.at(resolved(operand)) : nullptr);
    std::vector<TensorType> types;
    if (node.op->kind == OpKind::opaque || node.body)
      for (const Value* output : node.outputs) types.push_back(smaller(output->type));
    std::shared_ptr<const void> attrs = node.attrs_;
    if (node.op->attrs_to_map && !selection_.default_attr.empty()) {
      AttrMap map = node.attr_map();
      std::erase_if(map, [&](const auto& attr) { return selection_.default_attr.contains({node.id, attr.first}); });
      attrs = node.op->attrs_from_map(map);
    }
    Node* copy = to_.add_node(node.op, attrs, operands, node.outputs.size(), node.sources, nullptr, types);
    if (node.body) copy->body = std::make_unique<Graph>(node.body->clone());
    copy->label = node.label;
    copy->pattern = node.pattern;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const bool taken = selection_.cuts.contains(node.outputs[i]->id);  // an input has the name
      copy->outputs[i]->name = taken ? "" : name_of(*node.outputs[i]);
      if (!taken) made_[node.outputs[i]] = copy->outputs[i];
    }
  }
};

}  // namespace

Selection all_of(const Graph& graph) {
  Selection selection;
  for (const Value* output : graph.outputs()) selection.outputs.push_back(output->id);
  return selection;
}

Graph selected(const Graph& graph, const Selection& selection) {
  Graph part = Builder(graph, selection).build();
  verify(part);
  return part;
}

std::vector<int> nodes_left(const Graph& graph, const Selection& selection) {
  Builder builder(graph, selection);
  builder.find_needed();
  std::vector<int> ids;
  for (const Node* node : graph.nodes())
    if (builder.nodes().contains(node)) ids.push_back(node->id);
  return ids;
}

}  // namespace opfuse
