// parts = PU * PR: the leading axes, flattened to U iterations, are cut into PU pieces, the next axis
// into PR ranges. Both follow from extents and the schedule, so results do not depend on the number of workers.
#include "cpu/emit/nest.hpp"

#include <algorithm>
#include <utility>

#include "base/fail.hpp"
#include "cpu/nest_parts.hpp"

namespace opfuse::cpu {

Dim Nest::trips(const Level& level) const {
  if (!level.lanes) return level.extent;
  const Dim padded = level.block > 1 ? ceil_div(level.extent, level.block) * Dim(level.block) : level.extent;
  return ceil_div(padded, width_);
}

Value* Nest::full_trips(const Level& level) { return k_.dim(floor_div(level.extent, width_)); }

void Nest::at_trip(const Level& level, Value* trip, const Env& env, const Body& body) {
  Env inner = env;
  AxisValue& axis = inner.axes.at(static_cast<size_t>(level.axis));
  if (!level.lanes) {
    axis = {trip, false, 1};
    return body(inner);
  }
  axis = {k_.mul(trip, k_.i64(width_)), true, width_};
  const auto whole = [&] { body(inner); };
  const auto tail = [&] {
    Env masked = inner;
    auto& b = k_.b;
    auto* type = b.getInt32Ty();
    const auto extent = level.extent.constant();
    const bool last = extent && level.block <= width_;  // there is one such trip: its lanes are known
    Value* rest = last ? k_.i64(*extent % width_) : k_.sub(k_.dim(level.extent), axis.base);
    Value* left = b.CreateTrunc(rest, type);
    Value* lane = b.CreateTrunc(k_.iota(width_), k_.lanes(type, width_));
    masked.mask = b.CreateICmpSLT(lane, k_.splat(left, width_));
    body(masked);
  };
  if (divides(width_, level.extent) && level.block <= width_) return whole();
  k_.branch(k_.b.CreateICmpSLT(trip, full_trips(level)), whole, tail);
}

/// Whole tiles, then the rest in halves of tiles.
void Nest::run_tiles(const Level& level, Value* begin, Value* end, const Env& env, const Body& body) {
  for (int64_t tile = level.tile; tile > 0; tile /= 2) {
    Value* tiles = k_.div(k_.sub(end, begin), k_.i64(tile));
    Value* middle = tile == 1 ? end : k_.add(begin, k_.mul(tiles, k_.i64(tile)));
    k_.loop(begin, middle, tile, [&](Value* i) {
      Env inner = env;
      inner.axes.at(static_cast<size_t>(level.axis)) = {i, false, 1};
      inner.tile = tile;
      body(inner);
    });
    begin = middle;
  }
}

/// Several vectors at once, then the rest one by one.
void Nest::run_vectors(size_t index, Value* begin, Value* end, const Env& env, const Body& body) {
  Level& level = levels_[index];
  const int64_t tile = level.tile;
  Value* whole = k_.max(begin, k_.min(end, full_trips(level)));
  Value* middle = k_.add(begin, k_.mul(k_.div(k_.sub(whole, begin), k_.i64(tile)), k_.i64(tile)));
  k_.loop(begin, middle, std::max(tile, level.strip), [&](Value* i) {
    Env inner = env;
    inner.axes.at(static_cast<size_t>(level.axis)) = {k_.mul(i, k_.i64(width_)), true, width_};
    inner.tile = tile;
    if (level.strip) inner.strip = k_.min(k_.i64(level.strip), k_.sub(middle, i));
    body(inner);
  });
  level.tile = 1;
  run(index, middle, end, env, body);
  level.tile = tile;
}

/// Border, interior, border.
void Nest::run_interior(size_t index, Value* begin, Value* end, const Env& env, const Body& body) {
  Level& level = levels_[index];
  const AxisRange inside = *std::exchange(level.interior, std::nullopt);
  const int64_t step = level.lanes ? width_ : 1;
  Value* first = k_.max(begin, k_.min(end, k_.i64((inside.low + step - 1) / step)));
  Value* last = k_.max(first, k_.min(end, k_.i64((inside.high + 1) / step)));
  run(index, begin, first, env, body);
  k_.loop(first, last, 1, [&](Value* i) {
    Env inner = env;
    inner.axes.at(static_cast<size_t>(level.axis)) = {k_.mul(i, k_.i64(step)), level.lanes, step, 0, inside};
    run_from(index + 1, inner, body);
  });
  run(index, last, end, env, body);
  level.interior = inside;
}

void Nest::run(size_t index, Value* begin, Value* end, const Env& env, const Body& body) {
  const Level& level = levels_[index];
  if (level.tile > 1)
    return level.lanes ? run_vectors(index, begin, end, env, body) : run_tiles(level, begin, end, env, body);
  if (level.interior) return run_interior(index, begin, end, env, body);
  const auto next = [&](const Env& inner) { run_from(index + 1, inner, body); };
  const auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
  const auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
  if (level.unrolled && first && last) {
    for (int64_t i = first->getSExtValue(); i < last->getSExtValue(); ++i) at_trip(level, k_.i64(i), env, next);
    return;
  }
  if (!level.lanes || (divides(width_, level.extent) && level.block <= width_)) {
    k_.loop(begin, end, 1, [&](Value* i) { at_trip(level, i, env, next); });
    return;
  }
  // whole chunks without a mask, then the rest
  Value* full = full_trips(level);
  k_.loop(begin, k_.min(end, full), 1, [&](Value* i) {
    Env inner = env;
    inner.axes.at(static_cast<size_t>(level.axis)) = {k_.mul(i, k_.i64(width_)), true, width_};
    next(inner);
  });
  k_.loop(k_.max(begin, full), end, 1, [&](Value* i) {
    Level tail = level;
    at_trip(tail, i, env, next);
  });
}

void Nest::run_from(size_t index, const Env& env, const Body& body) {
  if (index == levels_.size()) return body(env);
  run(index, k_.i64(0), k_.dim(trips(levels_[index])), env, body);
}

void Nest::emit_all(const Env& start, const Body& body) { run_from(0, start, body); }

/// Of `work`, which two cores share evenly, or as many threads as the schedule names.
Dim Nest::wanted_parts(const Dim& work) const {
  const int64_t* threads = k_.spec.schedule.find("threads");
  if (!threads) return max(Dim(1), min(Dim(kMostNestParts), floor_div(work, 2 * kNestGrain) * Dim(2)));
  const Dim count = floor_div(work, kGrainOfMany);
  if (const auto known = count.constant(); known && *known > *threads)
    return *threads * std::min<int64_t>(*known / *threads, 2);
  return max(Dim(1), min(Dim(*threads), count));
}

void Nest::emit_parts(const Env& start, const Dim& work, const Body& body) {
  if (levels_.empty()) return body(start);
  const Dim want = wanted_parts(work);
  const int64_t enough = std::max<int64_t>(16, k_.spec.schedule.find("threads") ? want.constant().value_or(1) : 1);
  // leading axes until there are enough pieces; symbolic extents may be 1
  size_t split = 0;
  int64_t pieces = 1;
  for (; split + 1 < levels_.size(); ++split) {
    pieces *= trips(levels_[split]).constant().value_or(1);
    if (pieces >= enough) break;
  }
  Dim flat = 1;
  for (size_t i = 0; i < split; ++i) flat = flat * trips(levels_[i]);
  const Dim range = trips(levels_[split]);
  const Dim pu = max(Dim(1), min(flat, want));
  const Dim pr = max(Dim(1), min(range, floor_div(want, pu)));
  k_.parts = pu * pr;
  Value* u = k_.div(k_.part, k_.dim(pr));
  Value* r = k_.rem(k_.part, k_.dim(pr));
  const auto cut = [&](const Dim& count, Value* piece, const Dim& of) {
    return k_.div(k_.mul(k_.dim(count), piece), k_.dim(of));
  };
  const bool cut_range = pr.constant() != 1;
  Value* begin = cut_range ? cut(range, r, pr) : k_.i64(0);
  Value* end = cut_range ? cut(range, k_.b.CreateAdd(r, k_.i64(1)), pr) : k_.dim(range);
  const bool cut_flat = pu.constant() != 1;
  Value* first = cut_flat ? cut(flat, u, pu) : k_.i64(0);
  Value* last = cut_flat ? cut(flat, k_.b.CreateAdd(u, k_.i64(1)), pu) : k_.dim(flat);
  k_.loop(first, last, 1, [&](Value* i) {
    // decode the flattened axes, outermost first in memory = last divided
    std::vector<Value*> at(split);
    Value* rest = i;
    for (size_t level = split; level-- > 0;) {
      Value* count = k_.dim(trips(levels_[level]));
      at[level] = level == 0 ? rest : k_.rem(rest, count);
      rest = level == 0 ? rest : k_.div(rest, count);
    }
    const std::function<void(size_t, const Env&)> place = [&](size_t level, const Env& env) {
      if (level == split) return run(split, begin, end, env, body);
      at_trip(levels_[level], at[level], env, [&](const Env& inner) { place(level + 1, inner); });
    };
    place(0, start);
  });
}

}  // namespace opfuse::cpu
