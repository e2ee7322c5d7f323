// Matrix products. gemm: domain [m, n], reduce [k]; matmul of any rank: domain [batch.., m, n], batch
// dimensions broadcast by their index maps, vectors lack their m or n. Transposes are index maps only.
#include "expr/domain.hpp"
#include "ops/gemm.hpp"
#include "region/channel_affine.hpp"
#include "region/integer_product.hpp"
#include "region/matrix_product.hpp"

namespace opfuse {
namespace {

IndexExpr axis_index(int axis) { return IndexExpr{{{1, axis}}, 0, {}}; }

IndexMap matrix_map(int row, int column, bool transposed) {
  return {{axis_index(transposed ? column : row), axis_index(transposed ? row : column)}};
}

/// A matrix of codes times a constant matrix of codes.
bool lower_codes(Lowering& lowering, const Node& node, bool transposed_left, bool transposed_right) {
  const auto codes = integer_product(lowering, node, transposed_right ? 0 : 1, true);
  if (!codes) return false;
  const Shape& a = node.input(0)->type.shape;
  const Shape& y = node.output()->type.shape;
  lowering.open(Anchor::contraction, y.dims, {a[transposed_left ? 0 : a.rank() - 1]});
  const auto depth = static_cast<int>(y.rank()), column = depth - 1;
  IndexMap left = matrix_map(0, depth, transposed_left);
  if (y.rank() > 2) {
    left.dims.clear();
    for (int axis = 0; axis < column; ++axis) left.dims.push_back(axis_index(axis));
    left.dims.push_back(axis_index(depth));
  }
  const Expr x = lowering.pull(codes->data, left);
  const Expr w = weight_at(lowering, *codes, matrix_map(depth, column, transposed_right));
  const Expr sum = lowering.reduce(ReduceKind::sum, widened(*codes, x) * cast(w, DType::i32));
  lowering.define(node.output(), real_of(lowering, *codes, sum, {{axis_index(column)}}));
  return true;
}

/// The BatchNorm to fold into constant weights, with what stands before it; null when there is none.
const Node* foldable(const Lowering& lowering, const Node& node) {
  const Gemm::Attrs& attrs = node.as<Gemm>();
  if (attrs.alpha != 1 || (node.input(2) != nullptr && attrs.beta != 1)) return nullptr;
  const Value* c = node.input(2);
  if (lowering.constant_of(node.input(1)) == nullptr) return nullptr;
  if (c != nullptr && (lowering.constant_of(c) == nullptr || c->type.shape.rank() != 1)) return nullptr;
  if (c != nullptr && !(c->type.shape[0] == node.output()->type.shape[1])) return nullptr;
  return foldable_batch_norm(lowering, node);
}

void lower_gemm(Lowering& lowering, const Node& node) {
  const Gemm::Attrs& attrs = node.as<Gemm>();
  const Shape& a = node.input(0)->type.shape;
  const Shape& y = node.output()->type.shape;
  const DType dtype = node.output()->type.dtype;
  const bool plain = attrs.alpha == 1 && (node.input(2) == nullptr || attrs.beta == 1);
  if (plain && lower_codes(lowering, node, attrs.transA, attrs.transB)) return;
  lowering.open(Anchor::contraction, y.dims, {a[attrs.transA ? 0 : 1]});
  const Expr left = lowering.pull(node.input(0), matrix_map(0, 2, attrs.transA));
  const IndexMap weight_map = matrix_map(2, 1, attrs.transB);
  if (const Node* norm = foldable(lowering, node)) {
    const ChannelAffine affine = *constant_affine(lowering, *norm);
    const Tensor weights = *lowering.constant_of(node.input(1));
    const Tensor bias = node.input(2) != nullptr ? *lowering.constant_of(node.input(2)) : Tensor();
    const int64_t axis = attrs.transB ? 0 : 1;
    const Expr right = lowering.pull_made(
        weights.type(), [=] { return folded_weights(weights, axis, affine); }, weight_map);
    const Expr sum = lowering.reduce(ReduceKind::sum, left * right);
    const Expr shift =
        lowering.pull_made({dtype, Shape{y[1]}}, [=] { return folded_bias(bias, affine, dtype); }, {{axis_index(1)}});
    lowering.mark_done(norm);
    return lowering.define(norm->output(), sum + shift);
  }
  Expr sum = lowering.reduce(ReduceKind::sum, left * lowering.pull(node.input(1), weight_map));
  if (attrs.alpha != 1) sum = sum * Expr::constant(dtype, attrs.alpha);
  if (node.input(2) != nullptr && attrs.beta != 0) {
    Expr c = lowering.pull(node.input(2), broadcast_map(node.input(2)->type.shape, y, lowering.stretches()));
    if (attrs.beta != 1) c = c * Expr::constant(dtype, attrs.beta);
    sum = sum + c;
  }
  lowering.define(node.output(), sum);
}

/// Index map of one matmul operand: its batch dimensions aligned with the domain's, then its two own.
IndexMap operand_map(const Lowering& lowering, const Shape& shape, size_t batch_rank, int first, int second) {
  IndexMap map;
  const size_t own = std::min<size_t>(shape.rank(), 2);
  const size_t batch = shape.rank() - own;
  const std::vector<Dim> axes = lowering.extents();
  for (size_t i = 0; i < batch; ++i) {
    const size_t axis = batch_rank - batch + i;
    map.dims.push_back(shape[i] == Dim(1)
                           ? IndexExpr{}
                           : broadcast_index(shape[i], axes[axis], static_cast<int>(axis), lowering.stretches()));
  }
  if (own == 2) map.dims.push_back(axis_index(first));
  map.dims.push_back(axis_index(second));
  return map;
}

void lower_matmul(Lowering& lowering, const Node& node) {
  const size_t left_rank = node.input(0)->type.shape.rank(), right_rank = node.input(1)->type.shape.rank();
  if (left_rank > 1 && right_rank == 2 && lower_codes(lowering, node, false, false)) return;
  const ProductMaps at = open_product(lowering, node);
  const Expr left = lowering.pull(node.input(0), at.left);
  const Expr right = lowering.pull(node.input(1), at.right);
  lowering.define(node.output(), lowering.reduce(ReduceKind::sum, left * right));
}

constexpr LowerRule kRules[] = {{.op = "gemm", .anchor = lower_gemm}, {.op = "matmul", .anchor = lower_matmul}};

}  // namespace

ProductMaps open_product(Lowering& lowering, const Node& node) {
  const Shape& a = node.input(0)->type.shape;
  const Shape& b = node.input(1)->type.shape;
  const Shape& y = node.output()->type.shape;
  const size_t batch = std::max(a.rank(), b.rank()) > 2 ? std::max(a.rank(), b.rank()) - 2 : 0;
  const int reduce = static_cast<int>(y.rank());
  const int m = static_cast<int>(batch);
  const int n = m + (a.rank() > 1 ? 1 : 0);
  lowering.open(Anchor::contraction, y.dims, {a[a.rank() - 1]});
  IndexMap left = operand_map(lowering, a, batch, m, reduce);
  return {std::move(left), b.rank() == 1 ? IndexMap{{axis_index(reduce)}} : operand_map(lowering, b, batch, reduce, n)};
}

std::span<const LowerRule> gemm_rules() { return kRules; }

}  // namespace opfuse
