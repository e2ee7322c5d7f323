// Opset 1 to 6. Most operators differ from opset 7 in how operands meet (broadcast and axis instead of NumPy's rule)
// and in what is an attribute: the former become Unsqueeze, the latter constants. What only opset 7 dropped without a
// meaning (consumed_inputs) is ignored. Training forms (is_test = 0) are refused.
#include <algorithm>
#include <array>

#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "onnx/known_shape.hpp"
#include "ops/registry.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

bool is_one_of(Bytes op, std::initializer_list<Bytes> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

/// b with ones behind it, so that its dimensions meet those of a from `axis` on.
Value* aligned(NodeImport& n, Value* a, Value* b, int64_t axis) {
  const auto behind = static_cast<int64_t>(rank_of(a)) - axis - static_cast<int64_t>(rank_of(b));
  if (axis < 0 || behind < 0)
    throw fail(E::bad_attribute, "axis {} does not fit {} and {}", axis, a->type.text(), b->type.text());
  if (behind == 0) return b;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < behind; ++i) axes.push_back(static_cast<int64_t>(rank_of(b)) + i);
  Speller s(n);
  return s.op("unsqueeze", {b, s.integers(axes)});
}

void align_operands(NodeImport& n) {
  const bool broadcast = n.integer("broadcast", 0) != 0;
  const Attribute* axis = n.attribute("axis");
  n.require_inputs(2, 2);
  if (broadcast && axis) n.inputs[1] = aligned(n, n.required(0), n.required(1), n.integer("axis", 0));
}

/// The slope of each channel, which NumPy's rule would align with the last axis.
void align_slope(NodeImport& n) {
  n.require_inputs(2, 2);
  const Shape& slope = n.required(1)->type.shape;
  const bool per_channel = slope.ranked && slope.rank() == 1 && !(slope[0] == Dim(1)) && rank_of(n.required(0)) > 2;
  if (per_channel) n.inputs[1] = aligned(n, n.required(0), n.required(1), 1);
}

void refuse_training(NodeImport& n) {
  if (n.integer("is_test", 0) == 0)
    throw fail(E::unsupported_attribute, "is_test = 0 (training) is not supported")
        .hint("export the model for inference, or set is_test = 1");
}

DType dtype_named(Bytes name) {
  constexpr std::array<std::pair<Bytes, int>, 10> kNames{{{"FLOAT", 1},
                                                          {"UINT8", 2},
                                                          {"INT8", 3},
                                                          {"UINT16", 4},
                                                          {"INT16", 5},
                                                          {"INT32", 6},
                                                          {"INT64", 7},
                                                          {"BOOL", 9},
                                                          {"FLOAT16", 10},
                                                          {"DOUBLE", 11}}};
  for (const auto& [known, number] : kNames)
    if (known == name) return dtype_of(number);
  throw fail(E::unsupported_dtype, "attribute to asks for element type {}", name);
}

Results reshape(NodeImport& n) {
  const auto shape = n.integers("shape");
  if (!shape) throw fail(E::bad_attribute, "attribute \"shape\" is missing");
  return n.emit("reshape", {}, {n.required(0), n.integers_constant(*shape)});
}

Results pad(NodeImport& n) {
  auto pads = n.integers("pads");
  if (!pads) pads = n.integers("paddings");
  if (!pads) throw fail(E::bad_attribute, "attribute \"pads\" is missing");
  const double value = n.real("value", 0);
  return n.emit(
      "pad", {{"mode", n.text("mode", "constant")}},
      {n.required(0), n.integers_constant(*pads), n.constant(Tensor::scalar(n.required(0)->type.dtype, value))});
}

Results upsample(NodeImport& n) {
  const std::string mode = n.text("mode", "nearest");
  if (mode != "nearest" && mode != "bilinear") throw fail(E::bad_attribute, "mode is \"{}\"", mode);
  const std::vector<double> scales{1, 1, n.real("height_scale", 1), n.real("width_scale", 1)};
  return n.emit("resize",
                {{"mode", std::string(mode == "nearest" ? "nearest" : "linear")},
                 {"coordinate_transformation_mode", std::string("asymmetric")},
                 {"nearest_mode", std::string("floor")}},
                {n.required(0), nullptr, n.constant(Tensor::of<double>(DType::f32, {4}, scales))});
}

/// x repeated `tiles` times along `axis`.
Results tile(NodeImport& n) {
  n.require_inputs(3, 3);
  const Value *tiles = n.required(1), *axis = n.required(2);
  if (!tiles->is_constant() || !axis->is_constant()) throw fail(E::unsupported_op, "Tile whose repeats are computed");
  std::vector<int64_t> repeats(rank_of(n.required(0)), 1);
  const auto at = static_cast<int64_t>(axis->constant->real(0));
  if (at < 0 || at >= static_cast<int64_t>(repeats.size()))
    throw fail(E::bad_dimension, "axis {} of {} dimensions", at, repeats.size());
  repeats[static_cast<size_t>(at)] = static_cast<int64_t>(tiles->constant->real(0));
  return n.emit("tile", {}, {n.required(0), n.integers_constant(repeats)});
}

}  // namespace

std::optional<Results> import_legacy(NodeImport& n) {
  const Bytes op = n.proto.op_type;
  n.ignore("consumed_inputs");
  if (is_one_of(op, {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Greater", "Less", "Equal"}))
    align_operands(n);
  if (op == "PRelu") align_slope(n);
  if (op == "Gemm") n.ignore("broadcast");  // C already follows NumPy's rule
  if (is_one_of(op, {"BatchNormalization", "Dropout"})) refuse_training(n);
  if (op == "Concat") return n.emit("concat", {{"axis", n.integer("axis", 1)}}, n.inputs);
  if (op == "Selu")
    return n.emit("selu",
                  {{"alpha", n.real("alpha", n.opset < 6 ? 1.6732 : 1.67326319217681884765625)},
                   {"gamma", n.real("gamma", n.opset < 6 ? 1.0507 : 1.05070102214813232421875)}},
                  n.inputs);
  if (op == "Cast" && n.opset < 6) return n.emit("cast", {{"to", dtype_named(n.text("to", ""))}}, {n.required(0)});
  if (op == "Reshape" && n.opset < 5) return reshape(n);
  if (op == "Pad") return pad(n);
  if (op == "Upsample") return upsample(n);
  if (op == "Tile" && n.opset < 6) return tile(n);
  return std::nullopt;
}

}  // namespace opfuse::onnx
