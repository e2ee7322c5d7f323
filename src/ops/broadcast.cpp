// NumPy broadcasting: shapes are aligned at their last dimension, and a dimension of 1 stretches.
// A symbolic dimension beside a constant gives the constant. Two different symbolic ones, of which a run checks that
// they are equal or one of them is 1, give
//     max(a, b) * min(a, b, 1)          the maximum, but 0 where one is 0
// and the same of all of them where more than two meet, in whatever order.
#include <algorithm>

#include "base/fail.hpp"
#include "ops/broadcast_dim.hpp"
#include "ops/declare.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {

namespace {

/// Operands of nested minima or maxima, but for the 1.
void collect(DimOp op, const Dim& d, std::vector<Dim>& into) {
  if (d.op() != op) {
    if (d != Dim(1) && std::find(into.begin(), into.end(), d) == into.end()) into.push_back(d);
    return;
  }
  for (const Dim& arg : d.args()) collect(op, arg, into);
}

Dim open_extent(const std::vector<Dim>& operands) {
  Dim most = operands[0], none = 1;
  for (const Dim& d : operands) {
    most = max(most, d);
    if (!surely_not_negative(d - Dim(1))) none = min(none, d);
  }
  return most * none;
}

/// Of which dimensions `d` is the broadcast: itself, where it is none.
std::vector<Dim> operands_of(const Dim& d) {
  std::vector<Dim> operands;
  const auto of_factor = [&](const Dim& factor) {
    for (const DimOp op : {DimOp::max, DimOp::min})
      if (factor.op() == op) collect(op, factor, operands);
  };
  if (d.op() == DimOp::mul)
    for (const Dim& factor : d.args()) of_factor(factor);
  else
    of_factor(d);
  return !operands.empty() && open_extent(operands) == d ? operands : std::vector<Dim>{d};
}

/// min(a, b) where d is max(0, min(a + c, b + c) - c): the extent of a slice of which both ends were moved.
std::vector<Dim> cut_at(const Dim& d) {
  if (d.op() == DimOp::min) return d.args();
  const Dim* sum = &d;
  if (d.op() == DimOp::max) {
    const size_t zero = d.args()[0] == Dim(0) ? 0 : 1;
    if (!(d.args()[zero] == Dim(0))) return {};
    sum = &d.args()[1 - zero];
  }
  if (sum->op() != DimOp::add || sum->args().size() != 2) return {};
  const size_t by = sum->args()[0].is_constant() ? 0 : 1;
  const Dim& inner = sum->args()[1 - by];
  if (!sum->args()[by].is_constant() || inner.op() != DimOp::min) return {};
  std::vector<Dim> moved;
  for (const Dim& arg : inner.args()) moved.push_back(arg + sum->args()[by]);
  return moved;
}

/// d is the other, cut at a constant: positions sliced from a table. Where the two broadcast, the other is the extent,
/// since the cut one is 1 only where the other is (or the constant is).
bool is_cut(const Dim& d, const Dim& other) {
  const std::vector<Dim> args = cut_at(d);
  const auto stays = [&](const Dim& arg) { return arg == other || (arg.is_constant() && arg.value() >= 1); };
  return std::find(args.begin(), args.end(), other) != args.end() && std::all_of(args.begin(), args.end(), stays);
}

}  // namespace

std::optional<Dim> broadcast_dim(const Dim& a, const Dim& b) {
  if (a == b || b == Dim(1)) return a;
  if (a == Dim(1)) return b;
  if (a.is_constant() && b.is_constant()) return std::nullopt;
  if (a.is_constant()) return a;
  if (b.is_constant()) return b;
  std::vector<Dim> all = operands_of(a);
  for (const Dim& d : operands_of(b))
    if (std::find(all.begin(), all.end(), d) == all.end()) all.push_back(d);
  const std::vector<Dim> every = all;
  std::erase_if(all, [&](const Dim& d) {
    return std::any_of(every.begin(), every.end(), [&](const Dim& other) { return is_cut(d, other); });
  });
  return all.size() == 1 ? all[0] : open_extent(all);
}

namespace {

std::optional<int64_t> broadcast_dim(int64_t a, int64_t b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  return std::nullopt;
}

/// Aligns at the end; returns false at the first dimension that does not fit.
template <class D>
bool broadcast_dims(const std::vector<D>& a, const std::vector<D>& b, std::vector<D>& out) {
  const size_t rank = std::max(a.size(), b.size());
  out.assign(rank, D(1));
  for (size_t i = 0; i < rank; ++i) {
    const D x = i + a.size() < rank ? D(1) : a[i + a.size() - rank];
    const D y = i + b.size() < rank ? D(1) : b[i + b.size() - rank];
    const auto common = broadcast_dim(x, y);
    if (!common) return false;
    if constexpr (std::is_same_v<D, Dim>)
      assume(DimRule::broadcast, x, y, fmt::format("axis {} of the operands broadcasts", i));
    out[i] = *common;
  }
  return true;
}

}  // namespace

Shape broadcast(const Shape& a, const Shape& b) {
  if (!a.ranked || !b.ranked) return Shape::unknown();
  Shape out;
  if (!broadcast_dims(a.dims, b.dims, out.dims))
    throw fail(E::shape_mismatch, "shapes {} and {} do not broadcast", a.text(), b.text())
        .hint("dimensions are aligned at the end; each pair must be equal or contain a 1");
  return out;
}

std::vector<int64_t> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> out;
  if (!broadcast_dims(a, b, out))
    throw fail(E::shape_mismatch, "shapes {} and {} do not broadcast", Shape::of(a).text(), Shape::of(b).text());
  return out;
}

}  // namespace opfuse
