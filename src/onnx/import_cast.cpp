// Conversions that say how they round. opfuse's cast gives the nearest value, and what a type has for numbers that are
// too large; ONNX's saturates first, unless told not to, and rounds exponents (f8e8m0) up.
//   saturate          cast(clip(x, -greatest, greatest))
//   f8e8m0, up, down  the bits of a float, all of its mantissa added (up) and cut off, are a power of two
#include <cmath>

#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "tensor/small_float.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

Value* to_exponents(Speller& s, Value* x, bool saturate, const std::string& mode) {
  constexpr double kMantissa = 0x7fffff, kExponent = 0x7f800000, kGreatest = 0x7f000000;
  x = s.op("abs", {s.cast(x, DType::f32)});
  const AttrMap to_bits{{"from", DType::f32}, {"to", DType::i32}}, to_real{{"from", DType::i32}, {"to", DType::f32}};
  const auto number = [&](double value) { return s.number(value, DType::i32); };
  Value* bits = s.op("bit_cast", {x}, to_bits);
  if (mode == "nearest") {  // halfway rounds up, but not among denormal numbers
    Value* normal = s.cast(s.op("greater_or_equal", {bits, number(0x800000)}), DType::i32);
    bits = s.op("add", {bits, s.op("add", {number(0x3fffff), normal})});
  }
  if (mode == "up") bits = s.op("add", {bits, number(kMantissa)});
  bits = s.op("bitwise_and", {bits, number(kExponent)});
  if (saturate) bits = s.op("min", {bits, number(kGreatest)});
  Value* power = s.op("bit_cast", {bits}, to_real);
  Value* finite = s.op("less", {x, s.number(HUGE_VAL, DType::f32)});
  return s.cast(s.op("where", {finite, power, s.number(HUGE_VAL, DType::f32)}), DType::f8e8m0);
}

Value* converted(Speller& s, Value* x, DType to, bool saturate, const std::string& mode) {
  const DType from = x->type.dtype;
  if (from == to) return s.op("identity", {x});
  if (to == DType::f8e8m0) return to_exponents(s, x, saturate, mode);
  if (is_integer(to) && bit_size(to) < 8 && is_float(from)) x = s.cast(x, DType::i32);  // low bits of the integer
  const bool small = is_float(to) && byte_size(to) == 1;
  if (!small) return s.op("cast", {x}, {{"to", to}});
  if (!is_float(from)) x = s.cast(x, DType::f32);
  if (saturate && to != DType::f4e2m1) {
    const DType wide = x->type.dtype == DType::f64 ? DType::f64 : DType::f32;
    x = s.cast(x, wide);
    x = s.op("clip", {x, s.number(-greatest_of(to), wide), s.number(greatest_of(to), wide)});
  }
  return s.op("cast", {x}, {{"to", to}});
}

}  // namespace

Results import_cast(NodeImport& n) {
  n.require_inputs(1, 1);
  const bool saturate = n.integer("saturate", 1) != 0;
  const std::string mode = n.text("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest") throw fail(E::bad_attribute, "round_mode is \"{}\"", mode);
  const int64_t code = n.integer("to", 0);
  const DType to = dtype_of(code);
  if (code == 0) throw fail(E::bad_attribute, "attribute \"to\" is missing");
  if (to == DType::unknown || to == DType::string)
    throw fail(E::unsupported_dtype, "attribute to asks for element type {}", onnx_type_name(code));
  Speller s(n);
  return {converted(s, n.required(0), to, saturate, mode)};
}

/// Of the second operand only the element type matters, which is known here: neither its values nor its shape are.
Results import_cast_like(NodeImport& n) {
  n.require_inputs(2, 2);
  const bool saturate = n.integer("saturate", 1) != 0;
  const std::string mode = n.text("round_mode", "up");
  const DType to = n.required(1)->type.dtype;
  if (to == DType::unknown) return n.emit("cast_like", {}, n.inputs);
  Speller s(n);
  return {converted(s, n.required(0), to, saturate, mode)};
}

Results import_bit_cast(NodeImport& n) {
  n.require_inputs(1, 1);
  const int64_t code = n.integer("to", 0);
  const DType to = dtype_of(code);
  Speller s(n);
  Value* x = n.required(0);
  const DType from = x->type.dtype;
  if (from == DType::unknown) throw fail(E::unsupported_op, "the element type of the operand is not known");
  if (byte_size(to) == 0)
    throw fail(E::unsupported_dtype, "attribute to asks for element type {}", onnx_type_name(code));
  if (from == to) return {s.op("identity", {x})};
  if (from == DType::boolean && bit_size(to) == 8) {  // a byte that is 0 or 1
    x = s.cast(x, DType::u8);
    return {to == DType::u8 ? x : s.op("bit_cast", {x}, {{"from", DType::u8}, {"to", to}})};
  }
  return {s.op("bit_cast", {x}, {{"from", from}, {"to", to}})};
}

}  // namespace opfuse::onnx
