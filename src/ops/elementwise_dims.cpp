// Shape arithmetic through laws: a law applied to extents is an expression over extents, which is a Dim when it
// consists of integer sums, products, quotients, remainders, minima and maxima. Dimensions are never negative, so a
// symbolic one differs from any negative number (exporters compare target shapes with -1).
#include <algorithm>

#include "ir/dim_values.hpp"
#include "ops/elementwise.hpp"

namespace opfuse {
namespace {

std::optional<Dim> to_dim(const Expr& e);

/// 1 or 0 when it is decided by the values, or by one side being a dimension and the other negative.
std::optional<Dim> compare(ExprOp op, const Dim& a, const Dim& b) {
  auto x = a.constant(), y = b.constant();
  if (!x && !y && !(a == b)) return std::nullopt;
  if (!x && y && *y < 0) x = 0;
  if (!y && x && *x < 0) y = 0;
  if (a == b) x = y = 0;
  if (!x || !y) return std::nullopt;
  switch (op) {
    case ExprOp::eq:
      return Dim(*x == *y);
    case ExprOp::ne:
      return Dim(*x != *y);
    case ExprOp::lt:
      return Dim(*x < *y);
    case ExprOp::le:
      return Dim(*x <= *y);
    case ExprOp::gt:
      return Dim(*x > *y);
    default:
      return Dim(*x >= *y);
  }
}

/// Numbers near the end of the range (the INT64_MAX of open slices) are not dimensions; sums with them may overflow.
bool is_extreme(const Dim& d) {
  return d.is_constant() && (d.value() > (int64_t{1} << 48) || d.value() < -(int64_t{1} << 48));
}

std::optional<Dim> binary(ExprOp op, const Dim& a, const Dim& b) {
  const bool computes = op == ExprOp::add || op == ExprOp::sub || op == ExprOp::mul;
  if (computes && (is_extreme(a) || is_extreme(b))) return std::nullopt;
  const bool divides = b.is_constant() ? b.value() > 0 : true;
  switch (op) {
    case ExprOp::add:
      return a + b;
    case ExprOp::sub:
      return a - b;
    case ExprOp::mul:
      return a * b;
    case ExprOp::div:
      return divides ? std::optional(floor_div(a, b)) : std::nullopt;
    case ExprOp::mod:
      return divides ? std::optional(mod(a, b)) : std::nullopt;
    case ExprOp::min:
      return min(a, b);
    case ExprOp::max:
      return max(a, b);
    case ExprOp::eq:
    case ExprOp::ne:
    case ExprOp::lt:
    case ExprOp::le:
    case ExprOp::gt:
    case ExprOp::ge:
      return compare(op, a, b);
    default:
      return std::nullopt;
  }
}

std::optional<Dim> to_dim(const Expr& e) {
  if (is_float(e.dtype())) return std::nullopt;
  if (e.op() == ExprOp::constant) return Dim(e.integer_value());
  if (e.op() == ExprOp::extent) return e.dim();
  if (e.op() == ExprOp::cast) return is_integer(e.dtype()) ? to_dim(e.args()[0]) : std::nullopt;
  if (e.op() == ExprOp::select) {
    auto condition = to_dim(e.args()[0]);
    if (!condition || !condition->is_constant()) return std::nullopt;
    return to_dim(e.args()[condition->value() ? 1 : 2]);
  }
  if (e.args().size() == 1 && e.op() == ExprOp::neg) {
    auto x = to_dim(e.args()[0]);
    return x ? std::optional(Dim(0) - *x) : std::nullopt;
  }
  if (e.args().size() != 2) return std::nullopt;
  auto a = to_dim(e.args()[0]), b = to_dim(e.args()[1]);
  return a && b ? binary(e.op(), *a, *b) : std::nullopt;
}

Expr leaf(const Dim& dim, DType declared) {
  const DType dtype = declared == DType::boolean ? DType::boolean : DType::i64;
  return dim.is_constant() ? Expr::integer(dtype, dim.value()) : Expr::extent(dim);
}

}  // namespace

std::optional<std::vector<Dim>> elementwise_dims(const ElementwiseLaw& law, const void* attrs, const Inference& in) {
  std::vector<std::vector<Dim>> operands(in.inputs());
  size_t count = 1;
  for (size_t i = 0; i < in.inputs(); ++i) {
    if (!in.has(i)) continue;
    auto dims = in.dims(i);
    if (!dims || dims->empty() || in.shape(i).rank() > 1) return std::nullopt;
    operands[i] = std::move(*dims);
    if (operands[i].size() != 1 && count != 1 && operands[i].size() != count) return std::nullopt;
    count = std::max(count, operands[i].size());
  }
  std::vector<Dim> out;
  for (size_t at = 0; at < count; ++at) {
    std::vector<Expr> exprs(operands.size());
    for (size_t i = 0; i < operands.size(); ++i)
      if (!operands[i].empty()) exprs[i] = leaf(operands[i][operands[i].size() == 1 ? 0 : at], in.dtype(i));
    auto dim = to_dim(law.expr(attrs, exprs));
    if (!dim) return std::nullopt;
    out.push_back(std::move(*dim));
  }
  return out;
}

}  // namespace opfuse
