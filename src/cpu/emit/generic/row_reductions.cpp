// Reductions of the plain nest: chains of partial sums of each row of a tile, lanes along a domain axis (vertical) or
// along the last reduce axis (horizontal, combined at the end).
//
//     for reduce axes:  some neighbouring points at once, each the next chain's
//
// The few points of a window are unrolled. What is emitted together does not depend on each other, so functions take
// turns: one after the other, each would wait for its own latency.
#include "cpu/emit/generic/row_reductions.hpp"

#include <algorithm>

#include "cpu/emit/take_turns.hpp"
#include "expr/real_ops.hpp"

namespace opfuse::cpu {
namespace {

bool calls_functions(const Expr& value) {
  bool found = false;
  value.visit([&](const Expr& e) { found |= is_function(e.op()) && e.op() != ExprOp::erf; });
  return found;
}

}  // namespace

/// A few points, all known: windows.
bool RowReductions::is_window() const {
  if (plan_.reduce_lane >= 0) return false;
  int64_t points = 1;
  for (const Dim& d : s_.stage.reduce) {
    const int64_t extent = d.constant().value_or(kUnrolledWindow + 1);
    if (extent > kUnrolledWindow) return false;
    points *= extent;
  }
  return points <= kUnrolledWindow;
}

void RowReductions::unroll_window(const Env& env, const Body& body) {
  std::vector<Point> points{{env, 0}};
  for (size_t i = 0; i < s_.stage.reduce.size(); ++i) {
    std::vector<Point> next;
    for (const Point& before : points)
      for (int64_t at = 0; at < s_.stage.reduce[i].value(); ++at) {
        next.push_back(before);
        next.back().env.axes[static_cast<size_t>(domain_) + i] = {k_.i64(at), false, 1};
      }
    points = std::move(next);
  }
  const auto most = static_cast<size_t>(plan_.chains);
  for (size_t i = 0; i < points.size(); ++i) points[i].chain = i % most;
  for (size_t i = 0; i < points.size(); i += most)
    body({points.begin() + static_cast<std::ptrdiff_t>(i),
          points.begin() + static_cast<std::ptrdiff_t>(std::min(points.size(), i + most))});
}

/// The innermost loop, dealt to the chains.
void RowReductions::chains(Value* count, const std::function<Env(Value*)>& at, const Body& body) {
  Value* whole = k_.mul(k_.div(count, k_.i64(plan_.chains)), k_.i64(plan_.chains));
  k_.loop(k_.i64(0), whole, plan_.chains, [&](Value* i) {
    std::vector<Point> points;
    for (int64_t chain = 0; chain < plan_.chains; ++chain)
      points.push_back({at(k_.add(i, k_.i64(chain))), static_cast<size_t>(chain)});
    body(points);
  });
  k_.loop(whole, count, 1, [&](Value* i) { body({{at(i), 0}}); });
}

void RowReductions::loops(size_t index, const std::vector<int>& axes, Env env, const Body& body) {
  if (index == axes.size()) return body({{env, 0}});
  const int axis = axes[index];
  const auto along = [&](const AxisValue& value) {
    Env at = env;
    at.axes[static_cast<size_t>(axis)] = value;
    return at;
  };
  if (axis != plan_.reduce_lane) {
    const auto step = [&](Value* i) { return along({i, false, 1}); };
    if (index + 1 == axes.size()) return chains(k_.dim(extent(axis)), step, body);
    return k_.loop(k_.i64(0), k_.dim(extent(axis)), 1, [&](Value* i) { loops(index + 1, axes, step(i), body); });
  }
  const int width = plan_.reduce_width;  // the lane axis is the innermost
  env.width = width;
  const Dim full = floor_div(extent(axis), width);
  chains(
      k_.dim(full),
      [&](Value* i) {
        return along({k_.mul(i, k_.i64(width)), true, width});
      },
      body);
  if (auto e = extent(axis).constant(); e && *e % width == 0) return;
  Value* base = k_.dim(full * Dim(width));
  Value* left = k_.b.CreateTrunc(k_.sub(k_.dim(extent(axis)), base), k_.b.getInt32Ty());
  k_.branch(k_.b.CreateICmpSGT(left, k_.b.getInt32(0)), [&] {
    Env at = along({base, true, width});
    Value* lane = k_.b.CreateTrunc(k_.iota(width), k_.lanes(k_.b.getInt32Ty(), width));
    at.mask = k_.b.CreateICmpSLT(lane, k_.splat(left, width));
    body({{at, 0}});
  });
}

/// Emitters of the rows of all points. Where values call functions these are computed already, in turns.
std::vector<ExprEmitter> RowReductions::emit_points(const Reduction& r, const std::vector<Point>& points,
                                                    Results& results) {
  std::vector<ExprEmitter> emitters;
  for (const Point& point : points)
    for (size_t row = 0; row < results.size(); ++row) emitters.push_back(s_.at(row_of(point.env, row), results[row]));
  if (emitters.size() > 1 && calls_functions(r.value))
    take_turns(k_, emitters.size(), [&](size_t i) { emitters[i].emit(r.value, r.value.dtype()); });
  return emitters;
}

void RowReductions::reduce_one(size_t index, const Env& env, Results& results) {
  const Reduction& r = s_.stage.reductions[index];
  const bool horizontal = plan_.reduce_lane >= 0;
  const int width = horizontal ? plan_.reduce_width : env.width;
  std::vector<int> axes;
  for (size_t i = 0; i < s_.stage.reduce.size(); ++i)
    if (const int axis = domain_ + static_cast<int>(i); axis != plan_.reduce_lane) axes.push_back(axis);
  if (horizontal) axes.push_back(plan_.reduce_lane);
  Value* start = identity_of(k_, r, width);
  std::vector<std::vector<llvm::AllocaInst*>> sums(results.size());  // by row and chain
  for (auto& row : sums)
    for (int64_t chain = 0; chain < plan_.chains; ++chain) {
      row.push_back(k_.variable(start->getType()));
      k_.b.CreateStore(start, row.back());
    }
  const Body body = [&](const std::vector<Point>& points) {
    std::vector<ExprEmitter> emitters = emit_points(r, points, results);
    for (size_t i = 0; i < emitters.size(); ++i) {
      const Point& point = points[i / sums.size()];
      auto* acc = sums[i % sums.size()][point.chain];
      Value* before = k_.b.CreateLoad(start->getType(), acc);
      Value* mask = horizontal ? point.env.mask : nullptr;
      k_.b.CreateStore(accumulate(k_, r, r.value, before, emitters[i], mask), acc);
      if (stored_) stored_(index, row_of(point.env, i % sums.size()), emitters[i]);
    }
  };
  if (is_window())
    unroll_window(env, body);
  else
    loops(0, axes, env, body);
  const DType dtype = r.value.dtype();
  std::vector<Value*> totals;
  for (const auto& row : sums) {
    std::vector<Value*> left;
    for (llvm::AllocaInst* acc : row) left.push_back(k_.b.CreateLoad(start->getType(), acc));
    for (; left.size() > 1; left.resize(left.size() / 2))
      for (size_t i = 0; i < left.size() / 2; ++i) left[i] = combine(k_, r.kind, dtype, left[2 * i], left[2 * i + 1]);
    totals.push_back(left[0]);
  }
  if (horizontal) totals = combine_lanes(k_, r.kind, dtype, std::move(totals));
  for (size_t row = 0; row < totals.size(); ++row) results[row].push_back(totals[row]);
}

Env RowReductions::row_of(const Env& env, size_t row) const {
  Env at = env;
  if (row == 0) return at;
  AxisValue& axis = at.axes[static_cast<size_t>(plan_.rows.back())];
  if (axis.lanes)
    axis.base = k_.add(axis.base, k_.i64(static_cast<int64_t>(row) * plan_.width));
  else
    axis.plus = static_cast<int64_t>(row);
  return at;
}

RowReductions::Results RowReductions::reduce(const Env& env) {
  Results results(static_cast<size_t>(env.tile));
  for (size_t r = 0; r < s_.stage.reductions.size(); ++r) reduce_one(r, env, results);
  return results;
}

}  // namespace opfuse::cpu
