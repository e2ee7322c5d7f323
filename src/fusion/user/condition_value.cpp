// Properties of operators and values.
#include "fusion/user/condition_value.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "match/attention.hpp"
#include "ops/gemm.hpp"
#include "ops/registry.hpp"

namespace opfuse {

namespace {

using Value_ = ConditionValue;

Value_ of_dim(const Dim& dim) { return dim.is_constant() ? Value_::of(static_cast<double>(dim.value())) : Value_{}; }

Value_ of_dims(const std::vector<Dim>& dims, size_t from = 0) {
  Value_ list{Value_::Kind::list, 0, {}, {}};
  for (size_t i = from; i < dims.size(); ++i) list.list.push_back(of_dim(dims[i]));
  return list;
}

Value_ of_attr(const AttrValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) return Value_::of(*b);
  if (const auto* i = std::get_if<int64_t>(&value)) return Value_::of(static_cast<double>(*i));
  if (const auto* d = std::get_if<double>(&value)) return Value_::of(*d);
  if (const auto* s = std::get_if<std::string>(&value)) return Value_::of(*s);
  if (const auto* t = std::get_if<DType>(&value)) return Value_::of(std::string(name_of(*t)));
  Value_ list{Value_::Kind::list, 0, {}, {}};
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value))
    for (int64_t i : *ints) list.list.push_back(Value_::of(static_cast<double>(i)));
  if (const auto* reals = std::get_if<std::vector<double>>(&value))
    for (double d : *reals) list.list.push_back(Value_::of(d));
  return list;
}

Value_ of_tensor(const Value& value, const std::string& property) {
  const Shape& shape = value.type.shape;
  if (property == "dtype") return Value_::of(std::string(name_of(value.type.dtype)));
  if (property == "rank") return shape.ranked ? Value_::of(static_cast<double>(shape.rank())) : Value_{};
  if (property == "shape") return shape.ranked ? of_dims(shape.dims) : Value_{};
  if (property == "elements") return shape.ranked ? of_dim(shape.elements()) : Value_{};
  if (property == "constant") return Value_::of(value.is_constant());
  if (property == "value")
    if (const auto scalar = scalar_constant(&value)) return Value_::of(*scalar);
  return {};
}

/// One product, or three of one operand side by side.
Value_ of_projection(const Node& node, const std::string& property) {
  const Shape& x = node.input(0)->type.shape;
  if (property == "in_features") return x.ranked && x.rank() > 0 ? of_dim(x[x.rank() - 1]) : Value_{};
  if (property != "out_features") return {};
  Dim columns = 0;
  for (const Value* v : node.outputs)
    if (v->type.shape.ranked && v->type.shape.rank() > 0) columns = columns + v->type.shape.dims.back();
  return of_dim(columns);
}

Value_ of_weights(const Node& node, const std::string& property) {
  if (operator_name(node) == kInProjection) return of_projection(node, property);
  if (!node.input(1) || !node.input(1)->type.shape.ranked) return {};
  const Shape &x = node.input(0)->type.shape, &w = node.input(1)->type.shape;
  if (property == "in_channels") return x.ranked && x.rank() > 1 ? of_dim(x[1]) : Value_{};
  const Shape& y = node.output()->type.shape;
  if (property == "out_channels" && node.is("conv_transpose"))  // its weights are [in, out / group, ...]
    return y.ranked && y.rank() > 1 ? of_dim(y[1]) : Value_{};
  if (property == "out_channels") return w.rank() > 0 ? of_dim(w[0]) : Value_{};
  if (property == "kernel") return of_dims(w.dims, 2);
  const size_t from_last = node.is("gemm") && node.as<Gemm>().transA ? 2 : 1;
  if (property == "in_features") return x.ranked && x.rank() >= from_last ? of_dim(x[x.rank() - from_last]) : Value_{};
  if (property == "out_features") return y.ranked && y.rank() > 0 ? of_dim(y[y.rank() - 1]) : Value_{};
  return {};
}

}  // namespace

std::string ConditionValue::print() const {
  switch (kind) {
    case Kind::unknown:
      return "not known";
    case Kind::boolean:
      return number != 0 ? "true" : "false";
    case Kind::number:
      return fmt::format("{:g}", number);
    case Kind::text:
      return '"' + text + '"';
    case Kind::list:
      break;
  }
  std::string all;
  for (const ConditionValue& v : list) all += (all.empty() ? "" : ", ") + v.print();
  return "[" + all + "]";
}

ConditionValue property_of(const Match& match, const std::string& binding, const std::string& property) {
  const Value* value = match.value(binding);
  if (!value) return {};
  const Node* node = match.node(binding);
  if (!node) return of_tensor(*value, property);
  if (property == "op") return ConditionValue::of(std::string(operator_name(*node)));
  if (property == "inputs") return ConditionValue::of(static_cast<double>(node->inputs.size()));
  const AttrMap attrs = node->attr_map();
  if (const AttrValue* attr = find(attrs, property)) return of_attr(*attr);
  const ConditionValue of_w = of_weights(*node, property);
  return of_w.kind != ConditionValue::Kind::unknown ? of_w : of_tensor(*value, property);
}

static void collect(const Pattern& pattern, std::vector<const Element*>& found) {
  for (const auto& e : pattern.chain()) {
    const auto known = [&](const Element* other) { return other->binding == e->binding; };
    if (!e->binding.empty() && std::none_of(found.begin(), found.end(), known)) found.push_back(e.get());
    for (const Pattern& side : e->sides) collect(side, found);
    for (const Pattern& part : e->parts) collect(part, found);
  }
}

std::vector<const Element*> bindings_of(const Pattern& topology) {
  std::vector<const Element*> found;
  collect(topology, found);
  return found;
}

std::vector<std::string> properties_of(const Element& element) {
  if (element.kind != ElementKind::op) return {"dtype", "rank", "shape", "elements", "constant", "value"};
  std::vector<std::string> names{"op", "dtype", "rank", "shape", "elements", "inputs"};
  for (const std::string& op : element.ops) {
    if (const OpInfo* info = ops().find(op))
      for (const auto& [name, value] : info->default_attrs) names.push_back(name);
    if (op == "conv" || op == "conv_transpose")
      for (const char* name : {"in_channels", "out_channels", "kernel"}) names.emplace_back(name);
    if (op == "gemm" || op == "matmul" || op == kInProjection)
      for (const char* name : {"in_features", "out_features"}) names.emplace_back(name);
  }
  return names;
}

}  // namespace opfuse
