// Depthwise convolution and pooling: lanes along channels, a register tile of output pixels.
//
//   for batch, channel vectors, rows, tiles:
//     acc[pixel] = identity
//     for taps above the pixel's own (clipped to the data):
//       for taps along the row (unrolled, without those that leave the data):
//         acc[pixel] = combine(acc[pixel], value)     the weights vector is shared by all pixels
//     epilogue, store
#include "cpu/emit/window/window.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/fence.hpp"
#include "cpu/emit/parts.hpp"
#include "cpu/emit/sum_start.hpp"
#include "cpu/emit/window/band_means.hpp"
#include "cpu/emit/window/byte_window.hpp"
#include "cpu/window/window_schedule.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kUnrolledTaps = 7;

uint64_t all_pixels(int64_t width) { return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }

}  // namespace

WindowEmitter::WindowEmitter(Kernel& k, StageEmitter& stage, const WindowView& view, int64_t width)
    : k_(k), s_(stage), view_(view), lanes_(lanes_of(k.target)) {
  batch_axes_ = view.outer;
  row_axis_ = row_axis_of(view);
  if (row_axis_ >= 0) batch_axes_.pop_back();
  for (const SlidingDim& d : view.sliding)
    if (d.axis == view.pixel) pixel_dim_ = &d;
  pixel_leaves_ = view.guarded && pixel_dim_;
  const int64_t taps = pixel_dim_ && pixel_dim_->tap >= 0 ? tap_count(pixel_dim_->tap) : 1;
  runs_ = cut_tiles(k, axis_extent(s_.stage, view.pixel), width, pixel_leaves_ ? pixel_dim_ : nullptr, taps);
  for (const Operand& o : s_.outputs)
    for (const Block& b : o.layout.blocks) block_ = std::max(block_, b.factor);
  llvm::Type* vector = k.lanes(k.value_type(reduction().value.dtype()), static_cast<int>(lanes_));
  for (int64_t i = 0; i < std::max(width, 2 * k.target.multiply_adds_in_flight()); ++i)
    acc_.push_back(k.variable(vector));
  find_rest(width);
}

int64_t WindowEmitter::blocks() const {
  const int64_t channels = axis_extent(s_.stage, view_.vec).value();
  const int64_t padded = (channels + block_ - 1) / block_ * block_;
  return (padded + lanes_ - 1) / lanes_;
}

void WindowEmitter::emit(const Env& start, Value* b0, Value* b1, Value* r0, Value* r1) {
  each_vector(start, b0, b1, [&](const Env& env, Value*) { emit_rows(env, r0, r1); });
}

void WindowEmitter::each_vector(const Env& start, Value* b0, Value* b1,
                                const std::function<void(const Env&, Value*)>& body) const {
  const int64_t channels = axis_extent(s_.stage, view_.vec).value();
  const int64_t full = channels / lanes_;
  Env env = start;
  env.width = static_cast<int>(lanes_);
  env.block = block_;
  auto& vec = env.axes[static_cast<size_t>(view_.vec)];
  const auto at = [&](Value* c) {
    vec = {k_.mul(c, k_.i64(lanes_)), true, lanes_};
    body(env, c);
  };
  k_.loop(b0, blocks() == full ? b1 : k_.min(b1, k_.i64(full)), 1, at);
  if (blocks() == full) return;
  k_.loop(k_.max(b0, k_.i64(full)), b1, 1, [&](Value* c) {
    Value* left = k_.b.CreateTrunc(k_.sub(k_.i64(channels), k_.mul(c, k_.i64(lanes_))), k_.b.getInt32Ty());
    Value* lane = k_.b.CreateTrunc(k_.iota(env.width), k_.lanes(k_.b.getInt32Ty(), env.width));
    env.mask = k_.b.CreateICmpSLT(lane, k_.splat(left, env.width));
    at(c);
  });
}

void WindowEmitter::emit_rows(const Env& env, Value* r0, Value* r1) {
  if (rest_) return emit_resting_rows(env, r0, r1);
  if (row_axis_ < 0) return emit_row(env, nullptr);
  k_.loop(r0, r1, 1, [&](Value* row) {
    Env at = env;
    at.axes[static_cast<size_t>(row_axis_)] = {row, false, 1};
    emit_row(at, nullptr);
  });
}

void WindowEmitter::emit_row(const Env& env, Value* rest) {
  Env at = env;
  for (const TileRun& run : runs_)
    k_.loop(run.begin, run.end, run.width, [&](Value* q) {
      at.axes[static_cast<size_t>(view_.pixel)] = {q, false, 1};
      emit_tile(at, run);
      if (rest)
        rest_tile(run.width, rest_at(rest, q));
      else
        finish_tile(at, run.width);
    });
}

/// Leaves its sums in the accumulators.
void WindowEmitter::emit_tile(const Env& env, const TileRun& run) {
  Value* identity = identity_of(k_, reduction(), static_cast<int>(lanes_));
  sets_ = 1;
  const int64_t taps = pixel_dim_ && pixel_dim_->tap >= 0 && !run.clip ? tap_count(pixel_dim_->tap) : 1;
  while (sets_ * run.width < k_.target.multiply_adds_in_flight() && sets_ * 2 <= taps) sets_ *= 2;
  for (int64_t i = 0; i < sets_ * run.width; ++i) k_.b.CreateStore(identity, acc_[static_cast<size_t>(i)]);
  set_ = 0;
  const auto taps_of_tile = [&] { emit_taps(0, env, run, all_pixels(run.width)); };
  if (!view_.guarded) return taps_of_tile();
  k_.branch(inside_without_taps(k_, s_.stage, view_.sliding, env, view_.pixel), taps_of_tile);
}

/// All taps are chosen. Along a row whose windows are one pixel wide, padding is left to decide.
void WindowEmitter::emit_inside(const Env& env, const TileRun& run, uint64_t pixels) {
  const bool untapped = pixel_leaves_ && pixel_dim_->tap < 0;
  if (untapped && !run.valid.empty()) pixels &= run.valid[0];
  if (!pixels) return;
  if (!untapped || !run.clip) return emit_tap(env, pixels, run.width);
  const TapRange range = clip_taps(k_, *pixel_dim_, 1, env.axes[static_cast<size_t>(view_.pixel)].base);
  k_.branch(k_.b.CreateICmpSLT(range.low, range.high), [&] { emit_tap(env, pixels, run.width); });
}

void WindowEmitter::finish_tile(const Env& env, int64_t width) {
  std::vector<StageEmitter::Point> points;
  for (int64_t p = 0; p < width; ++p) points.push_back({pixel_at(env, p), {combined(p, width)}});
  s_.store_outputs(points);
  if (sums_) add_stored(points);
}

Env WindowEmitter::pixel_at(Env env, int64_t plus) const {
  env.axes[static_cast<size_t>(view_.pixel)].plus = plus;
  return env;
}

/// Read back from where they were just stored, and the sum from scratch: the chains of the epilogue and the taps leave
/// no registers, so the optimiser must not bring either back.
void WindowEmitter::add_stored(const std::vector<StageEmitter::Point>& points) {
  const Operand& map = s_.outputs[static_cast<size_t>(summed_)];
  const auto rest = [](Value* value) {
    if (auto* read = llvm::dyn_cast<llvm::LoadInst>(value)) read->setVolatile(true);
    return value;
  };
  std::vector<Value*> values;
  for (const StageEmitter::Point& point : points) {
    const Address a = address_of(k_, map, s_.stage.outputs[static_cast<size_t>(summed_)].map, point.env, nullptr);
    values.push_back(rest(load(k_, map, a, point.env, nullptr)));
  }
  for (; values.size() > 1; values.resize((values.size() + 1) / 2))
    for (size_t i = 0; i < values.size() / 2; ++i)
      values[i] = k_.b.CreateFAdd(values[i], values[values.size() - 1 - i]);
  Value* lane = points[0].env.axes[static_cast<size_t>(view_.vec)].base;
  Value* at = k_.element(sums_, DType::f32, k_.sub(lane, k_.mul(first_sum_, k_.i64(lanes_))));
  Value* before = rest(k_.b.CreateAlignedLoad(values[0]->getType(), at, llvm::Align(4)));
  k_.b.CreateAlignedStore(k_.b.CreateFAdd(before, values[0]), at, llvm::Align(4));
}

Value* WindowEmitter::combined(int64_t pixel, int64_t width) {
  std::vector<Value*> parts;
  for (int64_t set = 0; set < sets_; ++set) {
    auto* acc = acc_[static_cast<size_t>(set * width + pixel)];
    parts.push_back(k_.b.CreateLoad(acc->getAllocatedType(), acc));
  }
  for (; parts.size() > 1; parts.resize(parts.size() / 2))
    for (size_t i = 0; i < parts.size() / 2; ++i)
      parts[i] = combine(k_, reduction().kind, reduction().value.dtype(), parts[i], parts[i + parts.size() / 2]);
  return parts[0];
}

void WindowEmitter::emit_taps(size_t index, const Env& env, const TileRun& run, uint64_t pixels) {
  if (index == view_.taps.size()) return emit_inside(env, run, pixels);
  const int tap = view_.taps[index];
  if (pixel_dim_ && tap == pixel_dim_->tap && !run.clip) return emit_pixel_taps(index, env, run, pixels);
  Value* low = k_.i64(0);
  Value* high = k_.i64(tap_count(tap));
  for (const SlidingDim& s : view_.sliding) {
    if (s.tap != tap || !view_.guarded) continue;
    Value* at = s.axis < 0 ? k_.i64(0) : env.axes[static_cast<size_t>(s.axis)].base;
    const TapRange range = clip_taps(k_, s, tap_count(tap), at);
    low = range.low;
    high = range.high;
  }
  k_.loop(low, high, 1, [&](Value* r) {
    Env at = env;
    at.axes[static_cast<size_t>(tap)] = {r, false, 1};
    emit_taps(index + 1, at, run, pixels);
  });
}

void WindowEmitter::emit_pixel_taps(size_t index, const Env& env, const TileRun& run, uint64_t pixels) {
  const int tap = view_.taps[index];
  const int64_t taps = tap_count(tap);
  const auto at_tap = [&](Value* s, uint64_t valid) {
    Env at = env;
    at.axes[static_cast<size_t>(tap)] = {s, false, 1};
    emit_taps(index + 1, at, run, valid);
  };
  if (run.valid.empty() && taps > kUnrolledTaps)
    return k_.loop(k_.i64(0), k_.i64(taps), 1, [&](Value* s) { at_tap(s, pixels); });
  const int64_t row = (run.width - 1) * pixel_dim_->stride + (taps - 1) * pixel_dim_->dilation + 1;
  const bool all_live = sets_ * run.width + row + 1 <= k_.target.vector_registers;
  for (int64_t s = 0; s < taps; ++s) {
    set_ = s % sets_;
    at_tap(k_.i64(s), run.valid.empty() ? pixels : pixels & run.valid[static_cast<size_t>(s)]);
    if (!all_live) hold_back_loads(run.width);
  }
  set_ = 0;
}

/// A row of data that does not fit the registers is read again by every tap, as an operand of its multiply-add.
void WindowEmitter::hold_back_loads(int64_t width) {
  if (byte_size(reduction().value.dtype()) < 4) return;  // such vectors fill no register
  std::vector<Value*> values;
  std::vector<llvm::AllocaInst*> from;
  for (int64_t p = width; p-- > 0 && values.size() < 6;) {
    from.push_back(acc_[static_cast<size_t>(set_ * width + p)]);
    values.push_back(k_.b.CreateLoad(from.back()->getAllocatedType(), from.back()));
  }
  std::vector<Value**> tied;
  for (Value*& value : values) tied.push_back(&value);
  hold_back(k_, tied);
  for (size_t i = 0; i < values.size(); ++i) k_.b.CreateStore(values[i], from[i]);
}

void WindowEmitter::emit_tap(const Env& env, uint64_t pixels, int64_t width) {
  for (int64_t p = 0; p < width; ++p) {
    if (!(pixels >> p & 1)) continue;
    ExprEmitter point = s_.at(pixel_at(env, p));
    auto* acc = acc_[static_cast<size_t>(set_ * width + p)];
    Value* before = k_.b.CreateLoad(acc->getAllocatedType(), acc);
    k_.b.CreateStore(accumulate(k_, reduction(), view_.value, before, point, nullptr), acc);
  }
}

void emit_window(Kernel& k) {
  const auto means = view_means(k.spec.region);
  StageEmitter stage(k, 0, not_stored(means));
  const auto found = view_window(k.spec.region, 0);
  OPFUSE_CHECK(std::holds_alternative<WindowView>(found), "{}", std::get<std::string>(found));
  const WindowView& view = std::get<WindowView>(found);
  const int64_t width = typed<WindowSchedule>(k.spec.schedule).tile_w;
  stage.unguard(view.data);
  WindowEmitter emitter(k, stage, view, width);
  if (const auto bytes = byte_window(k.spec.region, view, k.spec.layouts, k.target)) {
    const auto start = start_of_sums(stage.stage, view.vec);
    StageEmitter sums(k, start ? start->stage : stage.stage, 0, not_stored(means));
    sums.unguard(view.data);
    ByteWindowEmitter of_vector(k, sums, view, *bytes, width, start ? start->bias : -1);
    return emit_tiled_parts(k, stage.fresh_env(1), emitter.batch_axes(), Dim(emitter.blocks()), emitter.rows(),
                            [&](const Env& env, PartRange blocks, PartRange rows) {
                              emitter.each_vector(env, blocks.begin, blocks.end, [&](const Env& at, Value*) {
                                of_vector.emit(at, rows.begin, rows.end);
                              });
                            });
  }
  BandMeans bands(k, means, 1);
  emit_tiled_parts(k, stage.fresh_env(1), emitter.batch_axes(), Dim(emitter.blocks()), emitter.rows(),
                   [&](const Env& env, PartRange blocks, PartRange rows) {
                     if (!means) return emitter.emit(env, blocks.begin, blocks.end, rows.begin, rows.end);
                     k.loop(blocks.begin, blocks.end, 1, [&](Value* block) {
                       Value* next = k.add(block, k.i64(1));
                       bands.clear();
                       bands.attach(emitter, block);
                       emitter.emit(env, block, next, rows.begin, rows.end);
                       bands.store(emitter, env, block, next, rows.begin);
                     });
                   });
}

}  // namespace opfuse::cpu
