// Matrix products of codes in i32. Where the second factor is a constant of i8 without zero points, the sum is one of
// plain codes, as instructions have it (u8 by i8; 128 is added to i8 data and to their zero point):
//
//   sum (x - zx) w = sum x w - zx sum w        modulo 2^32; zx may be computed
//
// Any other product sums differences.
#include "expr/domain.hpp"
#include "ops/checks.hpp"
#include "ops/matmul_integer.hpp"
#include "region/matrix_product.hpp"

namespace opfuse {
namespace {

constexpr int64_t kHalfOfCodes = 128;

bool is_zero(const Tensor& t) {
  for (int64_t i = 0; i < t.elements(); ++i)
    if (t.integer(i) != 0) return false;
  return true;
}

/// The second factor where it can be taken as it lies; else null.
const Tensor* plain_weights(const Lowering& lowering, const Node& node) {
  const Value *b = node.input(1), *a_zero = node.input(2), *b_zero = node.input(3);
  const Tensor* weights = lowering.constant_of(b);
  if (!weights || weights->dtype() != DType::i8 || weights->rank() != 2 || node.input(0)->type.shape.rank() < 2)
    return nullptr;
  const Tensor* zero = lowering.constant_of(b_zero);
  if (b_zero && (!zero || !is_zero(*zero))) return nullptr;
  return !a_zero || a_zero->type.shape.elements() == Dim(1) ? weights : nullptr;
}

Tensor column_sums(const Tensor& weights) {
  const int64_t depth = weights.dim(0), columns = weights.dim(1);
  std::vector<int64_t> sums(static_cast<size_t>(columns));
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t n = 0; n < columns; ++n) sums[static_cast<size_t>(n)] += weights.integer(k * columns + n);
  Tensor t(DType::i32, {columns});
  for (int64_t n = 0; n < columns; ++n) set_wrapped(t, n, sums[static_cast<size_t>(n)]);
  return t;
}

/// The only zero point of the data, as i32; nothing where it is known to be 0.
std::optional<Expr> only_zero(Lowering& lowering, const Value* zero, int64_t offset) {
  const Tensor* known = lowering.constant_of(zero);
  if (!zero || known) {
    const int64_t all = offset + (known ? known->integer(0) : 0);
    if (all == 0) return std::nullopt;
    return Expr::integer(DType::i32, all);
  }
  const Expr read = cast(lowering.pull(zero, IndexMap{std::vector<IndexExpr>(zero->type.shape.rank())}), DType::i32);
  return offset == 0 ? read : read + Expr::integer(DType::i32, offset);
}

/// Coordinates of a zero point where `codes` are those of the operand it belongs to.
IndexMap zero_map(const Shape& zero, size_t operand, const IndexMap& codes) {
  const size_t rank = MatMulInteger::zero_shape(zero, operand).rank();
  IndexMap map;
  for (size_t d = 0; d < zero.rank(); ++d)
    map.dims.push_back(zero[d] == Dim(1) ? IndexExpr{} : codes.dims[codes.dims.size() - rank + d]);
  return map;
}

Expr centred(Lowering& lowering, const Node& node, size_t operand, const IndexMap& map) {
  const Expr code = cast(lowering.pull(node.input(operand), map), DType::i32);
  const Value* zero = node.input(operand + 2);
  if (!zero) return code;
  return code - cast(lowering.pull(zero, zero_map(zero->type.shape, operand, map)), DType::i32);
}

void lower_matmul_integer(Lowering& lowering, const Node& node) {
  const Tensor* weights = plain_weights(lowering, node);
  const ProductMaps at = open_product(lowering, node);
  if (!weights) {
    const Expr left = centred(lowering, node, 0, at.left);
    const Expr right = centred(lowering, node, 1, at.right);
    return lowering.define(node.output(), lowering.reduce(ReduceKind::sum, left * right));
  }
  const int64_t offset = node.input(0)->type.dtype == DType::i8 ? kHalfOfCodes : 0;
  Expr x = cast(lowering.pull(node.input(0), at.left), DType::i32);
  if (offset) x = x + Expr::integer(DType::i32, offset);
  const Expr w = cast(lowering.pull(node.input(1), at.right), DType::i32);
  Expr sum = lowering.reduce(ReduceKind::sum, x * w);
  if (const auto zero = only_zero(lowering, node.input(2), offset)) {
    const Tensor codes = *weights;
    const TensorType type{DType::i32, Shape{Dim(codes.dim(1))}};
    const auto column = static_cast<int>(node.output()->type.shape.rank()) - 1;
    const IndexMap map{{IndexExpr{{{1, column}}, 0, {}}}};
    sum = sum - *zero * lowering.pull_made(
                            type, [codes] { return column_sums(codes); }, map, node.input(1));
  }
  lowering.define(node.output(), sum);
}

constexpr LowerRule kRules[] = {{.op = "matmul_integer", .anchor = lower_matmul_integer}};

}  // namespace

std::span<const LowerRule> matmul_integer_rules() { return kRules; }

}  // namespace opfuse
