// The loops over channels and taps around a step. Taps outside the data are left out: by bounds found when the kernel
// runs, or, in tiles at an edge, by the pixels for which they are inside. Left-out taps still fetch their share of the
// next weights; where padding has a code, they are added without data (Product::outside).
#include "cpu/emit/contraction/fetch.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/contraction/widen_data.hpp"

namespace opfuse::cpu {

Env TileProducts::at_axis(const Env& env, int axis, Value* value, int64_t multiple) const {
  Env at = env;
  if (axis >= 0) at.axes[static_cast<size_t>(axis)] = {value, false, multiple};
  return at;
}

/// Padded dimensions without taps (a padded 1x1 convolution), phases without weights: there is nothing to add.
void TileProducts::add_inside(const Env& env) const {
  const ContractionView& view = plan_.view;
  Value* inside = view.guarded ? inside_without_taps(k_, plan_.s.stage, view.sliding, env, view.pixel) : k_.b.getTrue();
  for (const PhaseDim& phase : view.phases)
    if (phase.tap < 0 && phase.missing > 0)
      inside = k_.b.CreateAnd(
          inside, k_.b.CreateICmpSGE(env.axes[static_cast<size_t>(phase.axis)].base, k_.i64(phase.missing)));
  k_.branch(inside, [&] { add_all(env); });
}

void TileProducts::add_all(const Env& env, int64_t first_step) const {
  const int64_t depth = plan_.depth(), step = plan_.schedule.step;
  const auto at_channel = [&](Value* channel, int64_t channels) {
    taps(0, at_axis(env, plan_.view.channel, channel, step), tile_.all(), channels);
  };
  Value* first = k_.i64(first_step);
  Value* end = k_.i64(depth / step);
  if (tile_.pass) {
    Value* steps = k_.i64(plan_.schedule.k_block / step);
    first = k_.mul(tile_.pass, steps);
    end = k_.min(end, k_.add(first, steps));
  }
  const int64_t ahead = steps_ahead(plan_);
  if (ahead == 0)
    add_steps(env, first, end);
  else if (ahead >= depth / step)
    add_ahead(env, first, end);
  else
    k_.loop(first, end, ahead, [&](Value* from) { add_ahead(env, from, k_.min(end, k_.add(from, k_.i64(ahead)))); });
  if (depth % step) at_channel(k_.i64(depth / step * step), depth % step);
}

void TileProducts::add_steps(const Env& env, Value* from, Value* to) const {
  const int64_t step = plan_.schedule.step;
  k_.loop(from, to, 1, [&](Value* c) {
    taps(0, at_axis(env, plan_.view.channel, k_.mul(c, k_.i64(step)), step), tile_.all(), step);
  });
}

void TileProducts::add_ahead(const Env& env, Value* from, Value* to) const {
  Value* first = k_.mul(from, k_.i64(plan_.schedule.step));
  for (const Phase phase : {Phase::widen, Phase::multiply})
    TileProducts(plan_, tile_, phase, first).add_steps(env, from, to);
}

void TileProducts::taps(size_t index, const Env& env, uint64_t pixels, int64_t channels) const {
  if (index == plan_.view.taps.size()) return padded_without_taps(env, pixels, channels);
  const int axis = plan_.view.taps[index];
  if (plan_.joins(axis)) return taps(index + 1, at_axis(env, axis, k_.i64(0)), pixels, channels);
  if (!taps_by_pixels(index, env, pixels, channels)) clipped_taps(index, env, pixels, channels);
}

void TileProducts::padded_without_taps(const Env& env, uint64_t pixels, int64_t channels) const {
  const SlidingDim* d = plan_.pixel_dim;
  if (d && d->tap < 0) {
    if (!tile_.run->valid.empty()) pixels &= tile_.columns(tile_.run->valid[0]);
    if (tile_.run->clip) {
      const TapRange r = clip_taps(k_, *d, 1, env.axes[static_cast<size_t>(plan_.view.pixel)].base);
      return k_.branch(k_.b.CreateICmpSLT(r.low, r.high), [&] { add_step(env, pixels, channels); });
    }
  }
  if (pixels || plan_.fills()) add_step(env, pixels, channels);
}

/// Taps that some of the tile's pixels or rows leave out: they are known. False: of this axis there are none.
bool TileProducts::taps_by_pixels(size_t index, const Env& env, uint64_t pixels, int64_t channels) const {
  const SlidingDim* d = plan_.sliding_of_tap(plan_.view.taps[index]);
  if (!d) return false;
  std::vector<uint64_t> valid;
  if (d == plan_.pixel_dim)
    for (uint64_t bits : tile_.run->valid) valid.push_back(tile_.columns(bits));
  if (d == plan_.row_dim && tile_.row_run)
    for (uint64_t bits : tile_.row_run->valid) valid.push_back(tile_.whole_rows(bits));
  if (valid.empty()) return false;
  masked_taps(index, env, valid, pixels, channels);
  return true;
}

/// Neighbours with the same valid pixels share a loop.
void TileProducts::masked_taps(size_t index, const Env& env, const std::vector<uint64_t>& valid, uint64_t pixels,
                               int64_t channels) const {
  const int axis = plan_.view.taps[index];
  const auto count = static_cast<int64_t>(valid.size());
  for (int64_t first = 0; first < count;) {
    int64_t last = first;
    const uint64_t bits = valid[static_cast<size_t>(first)];
    while (last < count && valid[static_cast<size_t>(last)] == bits) ++last;
    Value* begin = first == 0 ? missing_taps(axis, env) : k_.i64(first);
    const bool adds = (pixels & bits) || plan_.fills();
    if (adds || fetches())
      k_.loop(begin, k_.i64(last), 1, [&](Value* tap) {
        const Env at = at_axis(env, axis, tap);
        if (adds) return taps(index + 1, at, pixels & bits, channels);
        fetch_weights_of_taps(plan_, tile_, index + 1, at, channels);
      });
    first = last;
  }
}

void TileProducts::clipped_taps(size_t index, const Env& env, uint64_t pixels, int64_t channels) const {
  const int axis = plan_.view.taps[index];
  const SlidingDim* d = plan_.sliding_of_tap(axis);
  if (d && d == plan_.row_dim && tile_.row_run) d = nullptr;  // all taps of all rows are inside
  Value* count = k_.i64(plan_.tap_count(axis));
  Value* missing = missing_taps(axis, env);
  Value* low = missing;
  Value* high = count;
  if (d && plan_.may_leave(*d) && (d != plan_.pixel_dim || tile_.run->clip)) {
    Value* at = d->axis < 0 ? k_.i64(0) : env.axes[static_cast<size_t>(d->axis)].base;
    const TapRange range = clip_taps(k_, *d, plan_.tap_count(axis), at);
    low = k_.max(range.low, missing);
    high = range.high;
  }
  const auto loop = [&](Value* begin, Value* end, uint64_t inside) {
    k_.loop(begin, end, 1, [&](Value* tap) { taps(index + 1, at_axis(env, axis, tap), inside, channels); });
  };
  if (d && plan_.fills()) loop(k_.i64(0), k_.min(low, count), 0);
  loop(low, high, pixels);
  if (d && plan_.fills()) return loop(k_.max(low, high), count, 0);
  if (!d || !fetches()) return;
  const auto fetch = [&](Value* tap) {
    fetch_weights_of_taps(plan_, tile_, index + 1, at_axis(env, axis, tap), channels);
  };
  k_.loop(k_.i64(0), k_.min(low, count), 1, fetch);
  k_.loop(k_.max(low, high), count, 1, fetch);
}

/// How many of the first taps have no weights in the phase that `env` stands at: none or one.
Value* TileProducts::missing_taps(int tap, const Env& env) const {
  for (const PhaseDim& phase : plan_.view.phases)
    if (phase.tap == tap && phase.missing > 0) {
      Value* without = k_.b.CreateICmpSLT(env.axes[static_cast<size_t>(phase.axis)].base, k_.i64(phase.missing));
      return k_.b.CreateZExt(without, k_.b.getInt64Ty());
    }
  return k_.i64(0);
}

}  // namespace opfuse::cpu
