// Operand types of operations, and the typed-constant domain built on them.
#include "expr/domain.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "expr/expr_types.hpp"
#include "tensor/number.hpp"

namespace opfuse {

namespace {

bool is_logical(ExprOp op) {
  return op == ExprOp::logical_not || op == ExprOp::logical_and || op == ExprOp::logical_or ||
         op == ExprOp::logical_xor;
}
bool is_bitwise(ExprOp op) { return op == ExprOp::bit_not || (op >= ExprOp::bit_and && op <= ExprOp::shift_right); }
bool is_comparison(ExprOp op) { return op >= ExprOp::lt && op <= ExprOp::ne; }

/// Functions whose value on an integer is not an integer.
bool is_real_only(ExprOp op) { return op >= ExprOp::exp && op <= ExprOp::atanh; }

bool accepts(ExprOp op, DType dtype) {
  if (is_logical(op)) return dtype == DType::boolean;
  if (is_bitwise(op)) return is_integer(dtype);
  if (is_real_only(op)) return is_float(dtype);
  if (op == ExprOp::select || op == ExprOp::cast || op == ExprOp::bit_cast || op == ExprOp::eq || op == ExprOp::ne) {
    return byte_size(dtype) > 0;
  }
  return is_float(dtype) || is_integer(dtype);
}

}  // namespace

DType operand_dtype(ExprOp op, const std::vector<DType>& args) {
  DType dtype = DType::unknown;
  for (size_t i = 0; i < args.size(); ++i) {
    if (is_condition(op, i)) {
      if (args[i] != DType::boolean)
        throw fail(E::dtype_mismatch, "select needs a boolean condition, got {}", name_of(args[i]));
      continue;
    }
    if (args[i] == DType::unknown) continue;
    if (!accepts(op, args[i])) throw fail(E::dtype_mismatch, "{} has no meaning for {}", name_of(op), name_of(args[i]));
    if (dtype == DType::unknown) dtype = args[i];
    if (dtype != args[i])
      throw fail(E::dtype_mismatch, "{} of {} and {}", name_of(op), name_of(dtype), name_of(args[i]));
  }
  if (dtype == DType::unknown && (is_logical(op) || is_bitwise(op))) {
    throw fail(E::dtype_mismatch, "{} needs an operand with a type", name_of(op));
  }
  return dtype;
}

DType result_dtype(ExprOp op, const std::vector<DType>& args) {
  const DType dtype = operand_dtype(op, args);
  const bool boolean = is_comparison(op) || is_logical(op) || op == ExprOp::is_nan || op == ExprOp::is_inf;
  return boolean ? DType::boolean : dtype;
}

ScalarValue harden_constant(double value, DType dtype) {
  if (is_float(dtype)) return {dtype, value, 0};
  const int64_t integer = truncate_to(dtype, value);
  const double back =
      dtype == DType::u64 ? static_cast<double>(static_cast<uint64_t>(integer)) : static_cast<double>(integer);
  if (back != value) throw fail(E::dtype_mismatch, "the constant {} does not exist in {}", value, name_of(dtype));
  return {dtype, 0, integer};
}

Scalar apply(ExprOp op, std::initializer_list<Scalar> args) {
  std::vector<DType> dtypes;
  bool all_weak = true;
  Precision precision = Precision::exact;
  for (const Scalar& s : args) {
    dtypes.push_back(s.weak ? DType::unknown : s.v.dtype);
    if (s.weak) continue;
    all_weak = all_weak && is_condition(op, dtypes.size() - 1);
    if (s.precision == Precision::typed) precision = Precision::typed;
  }
  const DType common = operand_dtype(op, dtypes);
  std::vector<ScalarValue> values;
  for (const Scalar& s : args) {
    const bool harden = s.weak && common != DType::unknown && !is_condition(op, values.size());
    values.push_back(harden ? evaluate_op(ExprOp::cast, common, {harden_constant(s.v.real, common)}, precision) : s.v);
  }
  const DType result = result_dtype(op, dtypes);
  Scalar out(evaluate_op(op, result == DType::unknown ? DType::f64 : result, values, precision), precision);
  out.weak = all_weak && result == DType::unknown;
  return out;
}

Scalar cast(const Scalar& x, DType to) {
  return Scalar(evaluate_op(ExprOp::cast, to, {x.v}, x.precision), x.precision);
}

Scalar bit_cast(const Scalar& x, DType to) {
  return Scalar(evaluate_op(ExprOp::bit_cast, to, {x.v}, x.precision), x.precision);
}

}  // namespace opfuse
