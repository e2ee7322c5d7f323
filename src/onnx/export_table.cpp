// The import table read backwards: the ONNX operator of the target opset, its attributes under the same names, and a
// function where an opset says it differently.
#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "ir/defined_symbols.hpp"
#include "onnx/import_table.hpp"
#include "onnx/node_export.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"
#include "ops/read_sizes.hpp"
#include "ops/resize.hpp"

namespace opfuse::onnx {
namespace {

void clip(NodeExport& n) {
  const double low = std::get<double>(n.take("min")), high = std::get<double>(n.take("max"));
  const double limits[] = {low, high};
  for (size_t i : {size_t{1}, size_t{2}}) {
    double limit = limits[i - 1];
    const char* name = i == 1 ? "min" : "max";
    const bool has_operand = i < n.operands.size() && n.operands[i];
    if (n.opset >= 11) {
      if (!has_operand && std::isfinite(limit))
        n.set_input(i, n.constant(Tensor::scalar(n.operands[0]->type.dtype, limit)));
      continue;
    }
    if (has_operand) {
      if (!n.operands[i]->is_constant()) throw n.unwritable("with computed limits cannot be written", 11);
      limit = n.operands[i]->constant->real(0);
      n.inputs[i].clear();
    }
    if (std::isfinite(limit)) n.put(name, limit);
  }
}

void pad(NodeExport& n) {
  const double value = std::get<double>(n.take("value"));
  n.integers_by_opset("pads", 1, 11);
  const bool has_operand = n.operands.size() > 2 && n.operands[2];
  if (n.opset >= 11) {
    if (!has_operand && value != 0) n.set_input(2, n.constant(Tensor::scalar(n.operands[0]->type.dtype, value)));
    if (n.opset < 18 && n.operands.size() > 3 && n.operands[3]) throw n.unwritable("with axes cannot be written", 18);
    return;
  }
  if (has_operand && !n.operands[2]->is_constant()) throw n.unwritable("with computed value cannot be written", 11);
  const double padding = has_operand ? n.operands[2]->constant->real(0) : value;
  if (has_operand) n.inputs[2].clear();
  if (padding != 0) n.put("value", padding);
}

void slice(NodeExport& n) {
  if (n.opset < 10 && n.operands.size() > 4 && n.operands[4]) {
    for (int64_t step : n.operand_to_integers(4, 10))
      if (step != 1) throw n.unwritable("with steps cannot be written", 10);
  }
  n.integers_by_opset("starts", 1, 10);
  n.integers_by_opset("ends", 2, 10);
  n.integers_by_opset("axes", 3, 10);
}

void axes_13(NodeExport& n) { n.integers_by_opset("axes", 1, 13); }

void reduce(NodeExport& n) {
  const int64_t since = n.op_type == "ReduceSum" ? 13 : 18;
  if (n.opset < since && std::get<bool>(n.take("noop_with_empty_axes")))
    throw n.unwritable("with noop_with_empty_axes cannot be written", since);
  n.integers_by_opset("axes", 1, since);
}

void split(NodeExport& n) {
  const int64_t parts = std::get<int64_t>(n.take("num_outputs"));
  const bool sized =
      (n.operands.size() > 1 && n.operands[1]) || !std::get<std::vector<int64_t>>([&] {
                                                     const AttrValue* given = find(n.attrs, "split");
                                                     return given ? *given : AttrValue(std::vector<int64_t>());
                                                   }())
                                                       .empty();
  n.integers_by_opset("split", 1, 13);
  if (n.opset >= 18 && !sized) n.put("num_outputs", parts > 0 ? parts : static_cast<int64_t>(n.outputs.size()));
}

void top_k(NodeExport& n) {
  const int64_t k = std::get<int64_t>(n.take("k"));
  const bool has_operand = n.operands.size() > 1 && n.operands[1];
  if (n.opset >= 10 && !has_operand) n.set_input(1, n.constant(Tensor::from_i64({k})));
  if (n.opset < 10) n.put("k", has_operand ? n.operand_to_integers(1, 10).at(0) : k);
}

void softmax(NodeExport& n) {
  const bool flatten = std::get<bool>(n.take("flatten"));
  const int64_t axis = std::get<int64_t>(n.take("axis"));
  const Shape& shape = n.operands[0]->type.shape;
  const bool last = axis == -1 || (shape.ranked && axis == static_cast<int64_t>(shape.rank()) - 1);
  if (flatten != (n.opset < 13) && !last)
    throw n.unwritable(flatten ? "over flattened axes cannot be written" : "along an inner axis cannot be written",
                       flatten ? 0 : 13);
  n.put("axis", axis);
}

void resize(NodeExport& n) {
  const auto scales = std::get<std::vector<double>>(n.take("scales"));
  if (!scales.empty() && !(n.operands.size() > 2 && n.operands[2]))
    n.set_input(2, n.constant(Tensor::of(DType::f32, {static_cast<int64_t>(scales.size())}, scales)));
  if (n.opset >= 11) {
    for (size_t i : {size_t{1}, size_t{2}})  // optional from 13 on; before, an empty tensor stands for "absent"
      if (n.opset < 13 && (i >= n.inputs.size() || n.inputs[i].empty()))
        n.set_input(i, n.constant(Tensor(DType::f32, {0})));
    return;
  }
  const std::string mode = std::get<std::string>(n.take("coordinate_transformation_mode"));
  const std::string nearest = std::get<std::string>(n.take("nearest_mode"));
  const bool by_sizes = n.inputs.size() > 3 && !n.inputs[3].empty();
  if (mode != "asymmetric" || (nearest != "floor" && nearest != "ceil") || by_sizes)
    throw n.unwritable("with coordinate modes or sizes cannot be written", 11);
  n.inputs = {n.inputs[0], n.inputs.at(2)};
}

void bit_shift(NodeExport& n) {
  n.put("direction", std::string(std::get<std::string>(n.take("direction")) == "left" ? "LEFT" : "RIGHT"));
}

void gelu(NodeExport& n) {
  if (std::get<std::string>(n.take("form")) == "tanh") n.put("approximate", std::string("tanh"));
}

void constant_of_shape(NodeExport& n) {
  const DType dtype = std::get<DType>(n.take("dtype"));
  Tensor value(dtype, {1});
  value.set_real(0, std::get<double>(n.take("value")));
  n.put_tensor("value", value);
}

/// Ours neither saturates nor rounds up; these attributes came with opset 19 and 24.
void cast(NodeExport& n) {
  const AttrValue to = n.take("to");
  n.put("to", to);
  const DType dtype = std::get<DType>(to);
  if (!is_float(dtype) || byte_size(dtype) != 1) return;
  n.put("saturate", int64_t{0});
  if (dtype == DType::f8e8m0) n.put("round_mode", std::string("nearest"));
}

void bit_cast(NodeExport& n) {
  n.take("from");
  n.put("to", n.take("to"));
}

/// A zero point tells the type; so does an attribute from opset 21 on.
void quantize_linear(NodeExport& n) {
  if (n.operands.size() > 2 && n.operands[2]) n.take("output_dtype");
}

void always(NodeExport& n, const char* name) { n.put(name, n.take(name)); }
void concat(NodeExport& n) { always(n, "axis"); }
void blocksize(NodeExport& n) { always(n, "blocksize"); }
void size(NodeExport& n) { always(n, "size"); }
void kernel_shape(NodeExport& n) { always(n, "kernel_shape"); }
void equation(NodeExport& n) { always(n, "equation"); }
void num_groups(NodeExport& n) { always(n, "num_groups"); }

/// One, or none: ONNX's attribute is a number that may be absent.
void only_axis(NodeExport& n) {
  if (const auto axis = n.take_integers("axis"); !axis.empty()) n.put("axis", axis[0]);
}

/// Before opset 14 the time comes first.
void recurrent(NodeExport& n) {
  if (n.opset < 14 && n.take("layout") != AttrValue(int64_t{0})) throw n.unwritable("with layout 1", 14);
}

struct Special {
  const char* op;
  void (*write)(NodeExport&);
};

constexpr Special kSpecial[] = {
    {"clip", clip},
    {"pad", pad},
    {"slice", slice},
    {"squeeze", axes_13},
    {"unsqueeze", axes_13},
    {"split", split},
    {"top_k", top_k},
    {"softmax", softmax},
    {"log_softmax", softmax},
    {"hardmax", softmax},
    {"resize", resize},
    {"bit_shift", bit_shift},
    {"gelu", gelu},
    {"constant_of_shape", constant_of_shape},
    {"bit_cast", bit_cast},
    {"cast", cast},
    {"quantize_linear", quantize_linear},
    {"concat", concat},
    {"depth_to_space", blocksize},
    {"space_to_depth", blocksize},
    {"lrn", size},
    {"max_pool", kernel_shape},
    {"average_pool", kernel_shape},
    {"lp_pool", kernel_shape},
    {"einsum", equation},
    {"group_norm", num_groups},
    {"rnn", recurrent},
    {"gru", recurrent},
    {"lstm", recurrent},
    {"compress", only_axis},
    {"unique", only_axis},
};

bool same_value(const AttrValue& a, const AttrValue& b) {
  if (const auto* x = std::get_if<double>(&a)) return static_cast<float>(*x) == static_cast<float>(std::get<double>(b));
  return a == b;
}

/// The first opset with a type.
int64_t opset_of_type(DType dtype) {
  if (dtype == DType::u2 || dtype == DType::i2) return 25;
  if (dtype == DType::u4 || dtype == DType::i4) return 21;
  return is_float(dtype) && byte_size(dtype) == 1 ? 19 : 1;
}

/// Q and DQ: 10 per tensor, 13 per axis, 19 of halves, 21 in blocks and of codes of 16 bits.
template <class Op>
int64_t opset_of_codes(const Node& node, DType codes) {
  const auto& attrs = node.as<Op>();
  if (attrs.block_size > 0 || codes == DType::u16 || codes == DType::i16) return 21;
  if (node.input(1)->type.dtype != DType::f32) return 19;
  const Shape& scale = node.input(1)->type.shape;
  const bool one = scale.ranked && (scale.rank() == 0 || scale.elements() == Dim(1));
  return one && attrs.axis == typename Op::Attrs().axis ? 10 : 13;
}

}  // namespace

void export_known(NodeExport& n) {
  const std::string source = n.node.sources.empty() ? std::string() : n.node.sources.front().op_type;
  if (is_a<ReadSizes>(n.node)) {
    n.op_type = "Identity";
    return;
  }
  n.op_type = onnx_name(n.node.op->name, n.opset, source);
  if (n.op_type.empty()) throw n.unwritable("has no operator", first_opset_of(n.node));
  for (auto& [name, value] : n.node.attr_map()) {
    const AttrValue* otherwise = find(n.node.op->default_attrs, name);
    if (name == kDefines) continue;  // names of sizes are made when reading
    if (!otherwise || !same_value(value, *otherwise)) n.attrs.emplace_back(name, value);
  }
  for (const Special& special : kSpecial)
    if (n.node.is(special.op)) special.write(n);
  if (n.node.op->name.starts_with("reduce_")) reduce(n);
  for (const auto& [name, value] : n.attrs) n.put(name, value);
  while (!n.inputs.empty() && n.inputs.back().empty()) n.inputs.pop_back();
}

int64_t first_opset_of(const Node& node) {
  int64_t first = first_opset(node.op->name);
  if (is_a<Resize>(node)) first = std::max<int64_t>(first, 11);  // opset 10 has one of its coordinates
  if (is_a<QuantizeLinear>(node))
    first = std::max(first, opset_of_codes<QuantizeLinear>(node, node.output()->type.dtype));
  if (is_a<DequantizeLinear>(node))
    first = std::max(first, opset_of_codes<DequantizeLinear>(node, node.input(0)->type.dtype));
  for (const auto* values : {&node.inputs, &node.outputs})
    for (const Value* v : *values)
      if (v) first = std::max(first, opset_of_type(v->type.dtype));
  return first;
}

}  // namespace opfuse::onnx
