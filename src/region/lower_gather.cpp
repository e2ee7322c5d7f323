// Indexed reads: an operand coordinate is an integer expression over another operand's values. Negative
// indices count from the end; what lies outside all the same is clamped, so a read stays in its tensor.
#include "expr/domain.hpp"
#include "ops/gather.hpp"
#include "ops/one_hot.hpp"
#include "region/index_box.hpp"
#include "region/index_map.hpp"
#include "region/lowering.hpp"

namespace opfuse {
namespace {

size_t wrapped(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

IndexExpr clamped(const Expr& index, const Dim& size) {
  const Expr at = index.dtype() == DType::i64 ? index : cast(index, DType::i64);
  const Expr wrapped_at = select(less(at, dim_value(0)), at + dim_value(size), at);
  IndexExpr result;
  result.dynamic = minimum(maximum(wrapped_at, dim_value(0)), dim_value(size - Dim(1)));
  return result;
}

IndexMap part(const IndexMap& map, size_t first, size_t count) {
  IndexMap result;
  for (size_t i = 0; i < count; ++i) result.dims.push_back(map.dims[first + i]);
  return result;
}

void append(IndexMap& map, const IndexMap& more) {
  map.dims.insert(map.dims.end(), more.dims.begin(), more.dims.end());
}

/// The index at `map`, coordinates of the indices (of their tuples). Constant ones that are affine, as a slice,
/// a reversal or windows that overlap have them, are not read.
IndexExpr index_at(Lowering& lowering, const Value* indices, const IndexMap& map, const Dim& size,
                   std::optional<size_t> of_tuple = {}) {
  const Tensor* constant = lowering.constant_of(indices);
  if (constant != nullptr && size.is_constant()) {
    std::vector<int64_t> sizes = constant->sizes();
    size_t stride = 1;
    if (of_tuple) stride = static_cast<size_t>(sizes.back()), sizes.pop_back();
    if (const auto affine = affine_indices(*constant, of_tuple.value_or(0), stride, sizes, size.value())) {
      IndexExpr index{{}, Dim(affine->start), {}};
      for (size_t axis = 0; axis < sizes.size(); ++axis)
        if (affine->steps[axis] != 0)
          index.terms.push_back({.coef = Dim(affine->steps[axis]), .axis = static_cast<int>(axis)});
      return compose({{index}}, map, lowering.extents()).dims[0];
    }
  }
  IndexMap at = map;
  if (of_tuple) at.dims.push_back(IndexExpr{{}, Dim(static_cast<int64_t>(*of_tuple)), {}});
  return clamped(lowering.pull(indices, at), size);
}

Expr pull_gather(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const Shape& x = node.input(0)->type.shape;
  const size_t axis = wrapped(node.as<Gather>().axis, x.rank());
  const size_t index_rank = node.input(1)->type.shape.rank();
  IndexExpr at;
  const Tensor* constant = lowering.constant_of(node.input(1));
  if (constant != nullptr && constant->elements() == 1) {  // of an open axis too
    const int64_t position = constant->integer(0);
    at.offset = position < 0 ? x[axis] + Dim(position) : Dim(position);
  } else {
    at = index_at(lowering, node.input(1), part(map, axis, index_rank), x[axis]);
  }
  IndexMap inner = part(map, 0, axis);
  inner.dims.push_back(std::move(at));
  append(inner, part(map, axis + index_rank, x.rank() - axis - 1));
  return lowering.pull(node.input(0), inner);
}

Expr pull_gather_elements(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const Shape& x = node.input(0)->type.shape;
  const size_t axis = wrapped(node.as<GatherElements>().axis, x.rank());
  IndexMap inner = map;
  inner.dims[axis] = index_at(lowering, node.input(1), map, x[axis]);
  return lowering.pull(node.input(0), inner);
}

Expr pull_gather_nd(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const Shape& x = node.input(0)->type.shape;
  const Shape& indices = node.input(1)->type.shape;
  const auto batch = static_cast<size_t>(node.as<GatherND>().batch_dims);
  const Dim& last = indices[indices.rank() - 1];
  if (!last.is_constant()) decline("dynamic_operand", "the length of an index tuple is not known", node);
  const auto tuple = static_cast<size_t>(last.value());
  IndexMap inner = part(map, 0, batch);
  for (size_t i = 0; i < tuple; ++i)
    inner.dims.push_back(index_at(lowering, node.input(1), part(map, 0, indices.rank() - 1), x[batch + i], i));
  append(inner, part(map, indices.rank() - 1, x.rank() - batch - tuple));
  return lowering.pull(node.input(0), inner);
}

/// values[coordinate == index], negative indices counting from depth.
Expr pull_one_hot(Lowering& lowering, const Node& node, size_t, const IndexMap& map) {
  const size_t rank = node.output()->type.shape.rank();
  const size_t axis = wrapped(node.as<OneHot>().axis, rank);
  IndexMap at = part(map, 0, axis);
  append(at, part(map, axis + 1, rank - axis - 1));
  Expr index = lowering.pull(node.input(0), at);
  if (index.dtype() != DType::i64) index = cast(index, DType::i64);
  const Expr depth = dim_value(node.output()->type.shape[axis]);
  index = select(less(index, dim_value(0)), index + depth, index);
  const Expr off = lowering.pull(node.input(2), {{IndexExpr{{}, 0, {}}}});
  const Expr on = lowering.pull(node.input(2), {{IndexExpr{{}, 1, {}}}});
  return select(equal(index, index_value(map.dims[axis])), on, off);
}

constexpr LowerRule kRules[] = {{.op = "gather", .pull = pull_gather},
                                {.op = "gather_elements", .pull = pull_gather_elements},
                                {.op = "gather_nd", .pull = pull_gather_nd},
                                {.op = "one_hot", .pull = pull_one_hot}};

}  // namespace

std::span<const LowerRule> gather_rules() { return kRules; }

}  // namespace opfuse
