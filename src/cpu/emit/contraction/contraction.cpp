// Direct convolution and GEMM: a register tile of `width` pixels x `vectors` vectors of output channels.
//
//   for batch, channel blocks, rows, tiles:         parts cut batch, channel blocks and rows
//     acc = 0                                       width * vectors registers
//     for channel steps: for taps:                  taps outside the data are clipped or left out
//       for lanes of the step:                      unrolled
//         w[v] = weights vectors; for each pixel: acc[p][v] += broadcast(data[p]) * w[v]
//     epilogue in registers, one store per vector
//
// Several sums of the same data (a gated MLP) have `width * vectors` accumulators each; the epilogue combines them.
//
// Weights lie [O/block][taps and channel steps][lanes][block], so a block of them is one stream.
#include "cpu/emit/contraction/contraction.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/integers.hpp"
#include "cpu/contraction/contraction_schedule.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/parts.hpp"

namespace opfuse::cpu {
namespace {

std::optional<int64_t> constant_of(Value* value) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(value)) return c->getSExtValue();
  return std::nullopt;
}

}  // namespace

ContractionEmitter::ContractionEmitter(Kernel& k, StageEmitter& stage, const ContractionView& view)
    : k_(k), s_(stage), view_(view) {
  const auto s = typed<ContractionSchedule>(k.spec.schedule);
  lanes_ = view.types.lanes(k.target);
  vectors_ = s.nv;
  sums_ = view.sums();
  block_ = vectors_ * lanes_;
  width_ = s.tile_w;
  height_ = s.tile_h;
  step_ = s.step;
  chunk_ = s.chunk;
  prefetched_ = s.prefetch;
  grouped_ = s.grouped;
  overlapped_ = s.overlap != 0;
  depth_block_ = s.k_block;
  fetch_data_ = s.fetch_data != 0;
  fetch_outputs_ = s.fetch_outputs != 0;
  scaled_ = view.factor >= 0 && s.pack != 0;
  batch_axes_ = view.outer;
  row_axis_ = row_axis_of(view);
  for (const SlidingDim& d : view.sliding) {
    if (d.axis >= 0 && d.axis == view.pixel && may_leave(d)) pixel_dim_ = &d;
    if (d.axis >= 0 && d.axis == row_axis_) row_dim_ = &d;
  }
  if (row_axis_ >= 0) batch_axes_.pop_back();
  const Dim pixels = view.pixel < 0 ? Dim(1) : axis_extent(s_.stage, view.pixel);
  const int64_t taps = pixel_dim_ && pixel_dim_->tap >= 0 ? tap_count(pixel_dim_->tap) : 1;
  runs_ = cut_tiles(k, pixels, width_, pixel_dim_, taps, vectors_of_weights());
  if (runs_.front().before) open_items_ = row_axis_ < 0 ? open_tile_count(k, runs_) : k.dim(rows_of_part());
  if (height_ > 1)
    row_runs_ = cut_tiles(k, axis_extent(s_.stage, row_axis_), height_, may_leave(*row_dim_) ? row_dim_ : nullptr,
                          row_dim_->tap >= 0 ? tap_count(row_dim_->tap) : 1);
  llvm::Type* vector = k.lanes(k.value_type(view.types.sum), static_cast<int>(lanes_));
  for (int64_t i = 0; i < width_ * height_ * vectors_of_weights(); ++i) acc_.push_back(k.variable(vector));
}

bool ContractionEmitter::may_leave(const SlidingDim& s) const { return view_.guarded && cpu::may_leave(s_.stage, s); }

const SlidingDim* ContractionEmitter::sliding_of_tap(int tap) const {
  for (const SlidingDim& d : view_.sliding)
    if (d.tap == tap) return &d;
  return nullptr;
}

int64_t ContractionEmitter::blocks() const { return ceil_of(axis_extent(s_.stage, view_.vec).value(), block_); }

Dim ContractionEmitter::items() const {
  if (height_ > 1) return Dim(tile_count(row_runs_));
  if (row_axis_ >= 0) return axis_extent(s_.stage, row_axis_);
  return view_.pixel < 0 || axis_extent(s_.stage, view_.pixel).is_constant() ? Dim(tile_count(runs_)) : Dim(1);
}

/// Rows of a chunk of a part, roughly where their number is open.
Dim ContractionEmitter::rows_of_part() const {
  const Dim rows = axis_extent(s_.stage, row_axis_), parts = int64_t{typed<Parts>(k_.spec.schedule).parts_p};
  return min(Dim(chunk_), ceil_div(rows, parts));
}

int64_t ContractionEmitter::blocks_per_part() const {
  const int64_t parts = int64_t{typed<Parts>(k_.spec.schedule).parts_o};
  return ceil_of(blocks(), parts);
}

int64_t ContractionEmitter::items_per_part() const {
  const int64_t parts = int64_t{typed<Parts>(k_.spec.schedule).parts_p};
  return ceil_of(items().value(), parts);
}

void ContractionEmitter::emit(const Env& env, Value* ob0, Value* ob1, Value* i0, Value* i1) {
  if (!overlapped_) return emit_chunks(env, ob0, ob1, i0, i1);
  Value* any = k_.b.CreateAnd(k_.b.CreateICmpSLT(ob0, ob1), k_.b.CreateICmpSLT(i0, i1));
  k_.branch(any, [&] {
    start_rest(ob0, i0);
    emit_chunks(env, ob0, ob1, i0, i1);
    finish_rest(env);
  });
}

void ContractionEmitter::emit_chunks(const Env& env, Value* ob0, Value* ob1, Value* i0, Value* i1) {
  // chunks of rows small enough to stay in cache while all channel blocks pass over them
  first_block_ = ob0;
  last_block_ = k_.sub(ob1, k_.i64(1));
  if (items().is_constant() && chunk_ >= *items().constant()) return emit_passes(env, ob0, ob1, i0, i1);
  k_.loop(i0, i1, chunk_, [&](Value* begin) {
    Value* end = chunk_ == 1 ? k_.add(begin, k_.i64(1)) : k_.min(i1, k_.add(begin, k_.i64(chunk_)));
    emit_passes(env, ob0, ob1, begin, end);
  });
}

void ContractionEmitter::emit_passes(const Env& env, Value* ob0, Value* ob1, Value* i0, Value* i1) {
  if (!depth_block_) return emit_blocks(env, ob0, ob1, i0, i1);
  k_.loop(k_.i64(0), k_.i64(passes()), 1, [&](Value* pass) {
    pass_ = pass;
    emit_blocks(env, ob0, ob1, i0, i1);
  });
}

void ContractionEmitter::emit_block(Env env, Value* ob, Value* i0, Value* i1) {
  Value* first = k_.mul(ob, k_.i64(block_));
  env.axes[static_cast<size_t>(view_.vec)] = {first, false, block_};
  if (grouped_ == 2) start_groups(first);
  block_at_ = ob;
  emit_items(env, ob, i0, i1);
}

void ContractionEmitter::emit_items(Env env, Value* ob, Value* i0, Value* i1) {
  if (row_axis_ < 0) return emit_runs(env, ob, i0, i1);
  if (height_ > 1) return emit_row_tiles(env, ob, i0, i1);
  k_.loop(i0, i1, 1, [&](Value* row) {
    item_ = k_.sub(row, i0);
    env.axes[static_cast<size_t>(row_axis_)] = {row, false, 1};
    emit_runs(env, ob, nullptr, nullptr);
  });
}

void ContractionEmitter::emit_row_tiles(Env env, Value* ob, Value* i0, Value* i1) {
  for (const TileRun& run : row_runs_) {
    Value* first = k_.max(i0, k_.i64(run.first));
    Value* last = k_.min(i1, k_.i64(run.first + run.count));
    k_.loop(first, last, 1, [&](Value* tile) {
      item_ = k_.sub(tile, i0);
      Value* row = k_.add(run.begin, k_.mul(k_.sub(tile, k_.i64(run.first)), k_.i64(run.width)));
      env.axes[static_cast<size_t>(row_axis_)] = {row, false, 1};
      row_run_ = &run;
      tile_rows_ = run.width;
      emit_runs(env, ob, nullptr, nullptr);
    });
  }
  row_run_ = nullptr;
  tile_rows_ = 1;
}

uint64_t ContractionEmitter::rows(const TileRun& run, uint64_t bits) const {
  uint64_t mask = 0;
  for (int64_t y = 0; y < tile_rows_; ++y)
    if (bits >> y & 1) mask |= ((uint64_t{1} << run.width) - 1) << (y * run.width);
  return mask;
}

uint64_t ContractionEmitter::columns(const TileRun& run, uint64_t bits) const {
  uint64_t mask = 0;
  for (int64_t y = 0; y < tile_rows_; ++y) mask |= bits << (y * run.width);
  return mask;
}

uint64_t ContractionEmitter::all_pixels(const TileRun& run) const { return rows(run, ~uint64_t{0}); }

void ContractionEmitter::emit_runs(const Env& env, Value* ob, Value* t0, Value* t1) {
  for (const TileRun& run : runs_) {
    Value* begin = run.begin;
    Value* end = run.end;
    if (t0 && run.count && tile_count(runs_) > 1) {  // this part's tiles of the run
      Value* first = k_.max(t0, k_.i64(run.first));
      Value* last = k_.min(t1, k_.i64(run.first + run.count));
      begin = k_.add(run.begin, k_.mul(k_.sub(first, k_.i64(run.first)), k_.i64(run.width)));
      end = k_.add(run.begin, k_.mul(k_.sub(last, k_.i64(run.first)), k_.i64(run.width)));
    }
    k_.loop(begin, end, run.width, [&](Value* q) {
      if (t0 && run.before) item_ = k_.add(run.before, k_.div(k_.sub(q, run.begin), k_.i64(run.width)));
      if (t0 && !run.before) item_ = k_.sub(k_.div(q, k_.i64(width_)), t0);
      Env at = env;
      if (view_.pixel >= 0) at.axes[static_cast<size_t>(view_.pixel)] = {q, false, 1};
      if (overlapped_) return emit_overlapped_tile(at, ob, run);
      emit_tile(at, ob, run);
    });
  }
}

void ContractionEmitter::emit_tile(Env env, Value* ob, const TileRun& run) {
  Value* rest =
      pass_ ? resting(ob, view_.pixel < 0 ? k_.i64(0) : env.axes[static_cast<size_t>(view_.pixel)].base) : nullptr;
  if (fetch_outputs_) prefetch_epilogue(env, ob, run);
  start_accumulators(run, rest);
  when_inside(env, [&] { emit_channels(env, run); });
  if (!rest) return emit_epilogue(env, ob, run);
  k_.branch(
      k_.b.CreateICmpEQ(pass_, k_.i64(passes() - 1)), [&] { emit_epilogue(env, ob, run); },
      [&] { rest_accumulators(run, rest); });
}

/// Padded dimensions without taps (a padded 1x1 convolution), phases without weights: there is nothing to add.
void ContractionEmitter::when_inside(const Env& env, const std::function<void()>& body) {
  Value* inside = view_.guarded ? inside_without_taps(k_, s_.stage, view_.sliding, env, view_.pixel) : k_.b.getTrue();
  for (const PhaseDim& phase : view_.phases)
    if (phase.tap < 0 && phase.missing > 0)
      inside = k_.b.CreateAnd(
          inside, k_.b.CreateICmpSGE(env.axes[static_cast<size_t>(phase.axis)].base, k_.i64(phase.missing)));
  k_.branch(inside, body);
}

void ContractionEmitter::emit_channels(const Env& env, const TileRun& run, int64_t first_step) {
  const int64_t channels = channel_depth(s_.stage, view_);
  const auto at_channel = [&](Value* channel, int64_t lanes) {
    Env at = env;
    if (view_.channel >= 0) at.axes[static_cast<size_t>(view_.channel)] = {channel, false, step_};
    emit_taps(0, at, run, all_pixels(run), lanes);
  };
  Value* first = k_.i64(first_step);
  Value* end = k_.i64(channels / step_);
  if (pass_) {
    first = k_.mul(pass_, k_.i64(depth_block_ / step_));
    end = k_.min(end, k_.add(first, k_.i64(depth_block_ / step_)));
  }
  k_.loop(first, end, 1, [&](Value* c) { at_channel(k_.mul(c, k_.i64(step_)), step_); });
  if (channels % step_) at_channel(k_.i64(channels / step_ * step_), channels % step_);
}

void ContractionEmitter::emit_taps(size_t index, const Env& env, const TileRun& run, uint64_t pixels, int64_t lanes) {
  if (index == view_.taps.size()) {
    if (pixel_dim_ && pixel_dim_->tap < 0) {  // padding without taps
      if (!run.valid.empty()) pixels &= columns(run, run.valid[0]);
      if (run.clip) {
        Value* q = env.axes[static_cast<size_t>(view_.pixel)].base;
        const TapRange r = clip_taps(k_, *pixel_dim_, 1, q);
        return k_.branch(k_.b.CreateICmpSLT(r.low, r.high), [&] { emit_steps(env, pixels, run, lanes); });
      }
    }
    if (pixels || fills()) emit_steps(env, pixels, run, lanes);
    return;
  }
  const int tap = view_.taps[index];
  const SlidingDim* s = sliding_of_tap(tap);
  Value* missing = missing_taps(tap, env);
  if (s && s == pixel_dim_ && !run.valid.empty()) {
    std::vector<uint64_t> valid;
    for (uint64_t bits : run.valid) valid.push_back(columns(run, bits));
    return emit_masked_taps(index, env, run, valid, pixels, lanes);
  }
  if (s && s == row_dim_ && row_run_) {
    if (!row_run_->valid.empty()) {
      std::vector<uint64_t> valid;
      for (uint64_t bits : row_run_->valid) valid.push_back(rows(run, bits));
      return emit_masked_taps(index, env, run, valid, pixels, lanes);
    }
    s = nullptr;  // all taps of all rows are inside
  }
  Value* low = missing;
  Value* high = k_.i64(tap_count(tap));
  if (s && may_leave(*s) && (s != pixel_dim_ || run.clip)) {
    Value* at = s->axis < 0 ? k_.i64(0) : env.axes[static_cast<size_t>(s->axis)].base;
    const TapRange range = clip_taps(k_, *s, tap_count(tap), at);
    low = k_.max(range.low, missing);
    high = range.high;
  }
  const auto at_tap = [&](Value* r) {
    Env at = env;
    at.axes[static_cast<size_t>(tap)] = {r, false, 1};
    return at;
  };
  const auto outside = [&](Value* r) { emit_taps(index + 1, at_tap(r), run, 0, lanes); };
  if (s && fills()) k_.loop(k_.i64(0), k_.min(low, k_.i64(tap_count(tap))), 1, outside);
  k_.loop(low, high, 1, [&](Value* r) { emit_taps(index + 1, at_tap(r), run, pixels, lanes); });
  if (s && fills()) return k_.loop(k_.max(low, high), k_.i64(tap_count(tap)), 1, outside);
  if (!s || !prefetches()) return;  // left-out taps still fetch their share of the next weights
  const auto fetch = [&](Value* r) { emit_prefetch_of_taps(index + 1, at_tap(r), lanes); };
  k_.loop(k_.i64(0), k_.min(low, k_.i64(tap_count(tap))), 1, fetch);
  k_.loop(k_.max(low, high), k_.i64(tap_count(tap)), 1, fetch);
}

/// How many of the first taps have no weights in the phase that `env` stands at: none or one.
Value* ContractionEmitter::missing_taps(int tap, const Env& env) const {
  for (const PhaseDim& phase : view_.phases)
    if (phase.tap == tap && phase.missing > 0) {
      Value* without = k_.b.CreateICmpSLT(env.axes[static_cast<size_t>(phase.axis)].base, k_.i64(phase.missing));
      return k_.b.CreateZExt(without, k_.b.getInt64Ty());
    }
  return k_.i64(0);
}

/// The taps of an edge tile: neighbours with the same valid pixels share a loop.
void ContractionEmitter::emit_masked_taps(size_t index, const Env& env, const TileRun& run,
                                          const std::vector<uint64_t>& valid, uint64_t pixels, int64_t lanes) {
  const auto taps = static_cast<int64_t>(valid.size());
  for (int64_t first = 0; first < taps;) {
    int64_t last = first;
    const uint64_t bits = valid[static_cast<size_t>(first)];
    while (last < taps && valid[static_cast<size_t>(last)] == bits) ++last;
    Value* begin = first == 0 ? missing_taps(view_.taps[index], env) : k_.i64(first);
    if ((pixels & bits) || prefetches() || fills())
      k_.loop(begin, k_.i64(last), 1, [&](Value* tap) {
        Env at = env;
        at.axes[static_cast<size_t>(view_.taps[index])] = {tap, false, 1};
        if ((pixels & bits) || fills()) return emit_taps(index + 1, at, run, pixels & bits, lanes);
        emit_prefetch_of_taps(index + 1, at, lanes);
      });
    first = last;
  }
}

void ContractionEmitter::emit_epilogue(const Env& env, Value* ob, const TileRun& run) {
  const auto store = [&](bool tail) {
    std::vector<StageEmitter::Point> points = points_of(env, ob, run, tail);
    for (StageEmitter::Point& point : points)
      for (Value*& result : point.results) result = k_.b.CreateLoad(acc_[0]->getAllocatedType(), result);
    s_.store_outputs(points);
  };
  const int64_t channels = axis_extent(s_.stage, view_.vec).value();
  const int64_t full = channels / block_;
  if (half_) split_pairs(run);
  if (channels % block_ == 0 || (tail_apart_ && !in_tail_)) return store(false);
  if (full == 0 || tail_apart_) return store(true);
  k_.branch(
      k_.b.CreateICmpSLT(ob, k_.i64(full)), [&] { store(false); }, [&] { store(true); });
}

/// Pixel `p` of the tile whose first pixel `env` stands at.
void ContractionEmitter::move_to(Env& env, int64_t p, const TileRun& run) const {
  if (view_.pixel >= 0) env.axes[static_cast<size_t>(view_.pixel)].plus = p % run.width;
  if (row_run_) env.axes[static_cast<size_t>(row_axis_)].plus = p / run.width;
}

/// The tile's pixels and vectors of block `ob`; their results are the accumulators' places. The tail is the last block.
std::vector<StageEmitter::Point> ContractionEmitter::points_of(const Env& env, Value* ob, const TileRun& run,
                                                               bool tail) {
  const int64_t channels = axis_extent(s_.stage, view_.vec).value();
  int64_t block = 1;  // of the outputs' memory: whole blocks are written
  for (size_t i = 0; i < s_.outputs.size(); ++i)
    for (const Block& b : s_.outputs[i].layout.blocks) block = std::max(block, b.factor);
  const int64_t stored = (channels + block - 1) / block * block;
  std::vector<StageEmitter::Point> points;
  Value* base = tail ? k_.i64(channels / block_ * block_) : k_.mul(ob, k_.i64(block_));
  for (int64_t v = 0; v < vectors_; ++v) {
    Env at = env;
    at.block = block;
    at.width = static_cast<int>(lanes_);
    at.axes[static_cast<size_t>(view_.vec)] = {k_.add(base, k_.i64(v * lanes_)), true, lanes_};
    if (tail) {
      const int64_t first = *constant_of(base) + v * lanes_;
      if (first >= stored) break;
      std::vector<llvm::Constant*> bits;
      for (int64_t l = 0; l < lanes_; ++l) bits.push_back(k_.b.getInt1(first + l < channels));
      if (first + lanes_ > channels) at.mask = llvm::ConstantVector::get(bits);
    }
    for (int64_t p = 0; p < run.width * tile_rows_; ++p) {
      move_to(at, p, run);
      std::vector<Value*> results;
      for (int64_t sum = 0; sum < sums_; ++sum)
        results.push_back(acc_[static_cast<size_t>((p * sums_ + sum) * vectors_ + v)]);
      points.push_back({at, std::move(results)});
    }
  }
  return points;
}

void emit_contraction(Kernel& k) {
  StageEmitter stage(k, 0);
  const auto found = view_products(k.spec.region, 0);
  OPFUSE_CHECK(std::holds_alternative<ContractionView>(found), "{}", std::get<std::string>(found));
  ContractionEmitter emitter(k, stage, std::get<ContractionView>(found));
  const bool pack = typed<ContractionSchedule>(k.spec.schedule).pack != 0;
  emit_tiled_parts(k, stage.fresh_env(1), emitter.batch_axes(), Dim(emitter.blocks()), emitter.items(),
                   [&](const Env& env, PartRange blocks, PartRange rows) {
                     if (pack) return emitter.emit_packed(env, blocks.begin, blocks.end, rows.begin, rows.end);
                     emitter.emit(env, blocks.begin, blocks.end, rows.begin, rows.end);
                   });
}

}  // namespace opfuse::cpu
