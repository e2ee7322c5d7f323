#include "kernel/interior.hpp"

#include <algorithm>

#include "kernel/reads.hpp"
#include "region/dependence.hpp"
#include "region/read_shape.hpp"

namespace opfuse {
namespace {

int64_t floor_of(int64_t x, int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); }
int64_t ceil_of(int64_t x, int64_t y) { return -floor_of(-x, y); }

/// To where coef * axis + rest lies in [0, size), for the least and the largest rest. False where that is not known.
bool narrow(AxisRange& inside, const IndexExpr& index, const Dim& size, int axis, const std::vector<Dim>& extents) {
  if (index.dynamic || !size.is_constant()) return false;
  IndexExpr others = index;
  std::erase_if(others.terms, [&](const IndexTerm& t) { return t.axis == axis; });
  if (others.terms.size() + 1 != index.terms.size()) return false;
  const IndexTerm& own =
      *std::find_if(index.terms.begin(), index.terms.end(), [&](const IndexTerm& t) { return t.axis == axis; });
  const auto coef = own.coef.constant();
  const CoordinateRange rest = coordinate_range(others, extents);
  if (!coef || *coef == 0 || own.div.constant() != 1 || own.mod.constant() != 0 || !rest.low || !rest.high)
    return false;
  const int64_t from = -*rest.low, to = *size.constant() - 1 - *rest.high;
  inside.low = std::max(inside.low, *coef > 0 ? ceil_of(from, *coef) : ceil_of(to, *coef));
  inside.high = std::min(inside.high, *coef > 0 ? floor_of(to, *coef) : floor_of(from, *coef));
  return true;
}

bool moves(const Stage& stage, const IndexExpr& index, int axis) {
  if (index.dynamic) return axes_of(stage, index.dynamic).contains(axis);
  return std::any_of(index.terms.begin(), index.terms.end(), [&](const IndexTerm& t) { return t.axis == axis; });
}

/// Far below what could overflow when it is added or multiplied.
bool is_small(const AxisRange& r) {
  constexpr int64_t kSmall = int64_t{1} << 30;
  return r.low > -kSmall && r.high < kSmall;
}

AxisRange product(const AxisRange& x, const AxisRange& y) {
  const auto [low, high] = std::minmax({x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high});
  return {low, high};
}

}  // namespace

std::optional<AxisRange> interior_of(const Region& region, const Stage& stage, int axis) {
  const std::vector<Dim> extents = axis_extents(stage);
  const auto extent = extents.at(static_cast<size_t>(axis)).constant();
  if (!extent) return std::nullopt;
  AxisRange inside{0, *extent - 1};
  bool asked = false;
  for (const int i : guarded_reads(stage)) {
    const Read& read = stage.reads[static_cast<size_t>(i)];
    const Shape& shape = shape_read_by(region, read);
    for (size_t d = 0; d < read.map.dims.size(); ++d) {
      const IndexExpr& index = read.map.dims[d];
      if (!moves(stage, index, axis) || always_inside(index, shape[d], extents)) continue;
      if (!narrow(inside, index, shape[d], axis, extents)) return std::nullopt;
      asked = true;
    }
  }
  return asked && inside.low <= inside.high ? std::optional(inside) : std::nullopt;
}

std::optional<int64_t> KnownNumbers::value(const Expr& e) {
  const auto known = range(e);
  return known && known->low == known->high ? std::optional(known->low) : std::nullopt;
}

std::optional<AxisRange> KnownNumbers::range(const Expr& e) {
  if (e.weak() || e.dtype() != DType::i64) return std::nullopt;
  if (const auto it = memo_.find(e.node()); it != memo_.end()) return it->second;
  auto known = computed(e);
  if (known && !is_small(*known)) known.reset();
  memo_.emplace(e.node(), known);
  return known;
}

std::optional<AxisRange> KnownNumbers::computed(const Expr& e) {
  if (e.op() == ExprOp::constant) return AxisRange{e.integer_value(), e.integer_value()};
  if (e.op() == ExprOp::coord) return axes_.at(static_cast<size_t>(e.index()));
  if (e.args().size() != 2) return std::nullopt;
  const auto x = range(e.args()[0]), y = range(e.args()[1]);
  if (e.op() == ExprOp::min && x && y) return AxisRange{std::min(x->low, y->low), std::min(x->high, y->high)};
  if (e.op() == ExprOp::max && x && y) return AxisRange{std::max(x->low, y->low), std::max(x->high, y->high)};
  if (e.op() == ExprOp::add && x && y) return AxisRange{x->low + y->low, x->high + y->high};
  if (e.op() == ExprOp::sub && x && y) return AxisRange{x->low - y->high, x->high - y->low};
  if (e.op() == ExprOp::mul && x && y) return product(*x, *y);
  return std::nullopt;
}

}  // namespace opfuse
