//   parts: blocks of output channels x tiles of all images
//   for chunks of the part's tiles, small enough for L2:
//     for groups: input transform of the group's channels
//       for blocks of output channels: for points: products in register tiles; output transform with epilogue
#include "cpu/emit/winograd/winograd.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/integers.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/parts.hpp"
#include "cpu/winograd/winograd_schedule.hpp"
#include "tensor/winograd.hpp"

namespace opfuse::cpu {
WinogradEmitter::WinogradEmitter(Kernel& k, StageEmitter& stage, const WinogradView& view)
    : k_(k), s_(stage), view_(view) {
  const auto s = typed<WinogradSchedule>(k.spec.schedule);
  tile_ = {s.winograd_h, s.winograd_w};
  lanes_ = lanes_of(k.target);
  vectors_ = s.nv;
  block_ = vectors_ * lanes_;
  codes_ = view.codes();
  channels_ = channel_depth(s_.stage, view.contraction);
  words_ = ceil_of(channels_, winograd_unit(codes_));
  vector_words_ = lanes_ / winograd_unit(codes_);
  blocks_ = ceil_of(extent(view.contraction.vec), block_);
  width_ = s.tile_w;
  capacity_ = std::max(s.chunk, width_);
  prefetched_ = s.prefetch;
  points_ = winograd::points(tile_.h) * winograd::points(tile_.w);
  rows_ = ceil_of(extent(view.row.axis), tile_.h);
  columns_ = ceil_of(extent(view.column.axis), tile_.w);
  const WinogradScratch scratch =
      winograd_scratch(tile_, ceil_of(channels_, lanes_), codes_, block_, capacity_, k.target);
  data_point_ = scratch.data_point;
  sum_point_ = scratch.sum_point;
  int64_t at = 0;
  const auto place = [&](int64_t count) {
    Value* here = words(k.scratch, k.i64(at));
    at += ceil_of(count, k.target.line_floats()) * k.target.line_floats();
    return here;
  };
  outside_ = place(lanes_);
  data_ = place(points_ * data_point_);
  sums_ = place(points_ * sum_point_);
  results_ = place(tile_.h * tile_.w * lanes_);
  k.scratch_bytes = at * 4;
  OPFUSE_CHECK(k.scratch_bytes == scratch.bytes, "{} bytes of scratch, {} foretold", k.scratch_bytes, scratch.bytes);
  place_outside();
  for (int64_t i = 0; i < width_ * vectors_; ++i) acc_.push_back(k.variable(vector_type()));
}

Value* WinogradEmitter::load_vector(Value* at) { return k_.b.CreateAlignedLoad(vector_type(), at, llvm::Align(4)); }

void WinogradEmitter::store_vector(Value* at, Value* value) { k_.b.CreateAlignedStore(value, at, llvm::Align(4)); }

/// The padding, which is read outside the image.
void WinogradEmitter::place_outside() {
  if (!codes_) return store_vector(outside_, k_.zero(vector_type()));
  const ContractionView& c = view_.contraction;
  const int64_t code = c.types.data == DType::i8 ? c.padding - kHalfOfCodes : c.padding;
  llvm::Type* bytes = k_.lanes(k_.b.getInt8Ty(), static_cast<int>(lanes_));
  store_vector(outside_, llvm::ConstantInt::get(bytes, static_cast<uint64_t>(code) & 0xFF));
}

Dim WinogradEmitter::tiles() const {
  Dim count = rows_ * columns_;
  for (int axis : view_.batch) count = count * axis_extent(s_.stage, axis);
  return count;
}

/// Puts the axes of image and batch at the first output of a tile.
void WinogradEmitter::move_to_tile(Env& env, Value* tile) const {
  const auto set = [&](int axis, Value* at, int64_t multiple) {
    env.axes[static_cast<size_t>(axis)] = {at, false, multiple};
  };
  Value* line = k_.div(tile, k_.i64(columns_));
  set(view_.column.axis, k_.mul(k_.rem(tile, k_.i64(columns_)), k_.i64(tile_.w)), tile_.w);
  set(view_.row.axis, k_.mul(k_.rem(line, k_.i64(rows_)), k_.i64(tile_.h)), tile_.h);
  Value* rest = k_.div(line, k_.i64(rows_));
  for (size_t a = view_.batch.size(); a-- > 0;) {
    Value* size = k_.dim(env.extents[static_cast<size_t>(view_.batch[a])]);
    set(view_.batch[a], a == 0 ? rest : k_.rem(rest, size), 1);
    if (a) rest = k_.div(rest, size);
  }
}

void WinogradEmitter::emit(const Env& env, Value* ob0, Value* ob1, Value* t0, Value* t1) {
  Value* count = k_.sub(t1, t0);
  Value* chunks = k_.div(k_.add(count, k_.i64(capacity_ - 1)), k_.i64(capacity_));
  k_.loop(k_.i64(0), chunks, 1, [&](Value* chunk) {
    Value* begin = k_.div(k_.mul(count, chunk), chunks);
    Value* end = k_.div(k_.mul(count, k_.add(chunk, k_.i64(1))), chunks);
    emit_chunk(env, ob0, ob1, k_.add(t0, begin), k_.sub(end, begin));
  });
}

void WinogradEmitter::emit_chunk(const Env& env, Value* ob0, Value* ob1, Value* t0, Value* count) {
  const auto blocks_of_group = [&](const Env& at, Value* first, Value* last) {
    emit_input(at, t0, count);
    k_.loop(first, last, 1, [&](Value* ob) {
      emit_products(ob, count);
      emit_output(at, ob, t0, count);
    });
  };
  const int64_t group_out = view_.contraction.group_out;
  if (!group_out) return blocks_of_group(env, ob0, ob1);
  const int64_t per_group = group_out / block_;
  Value* groups = k_.div(k_.add(ob1, k_.i64(per_group - 1)), k_.i64(per_group));
  k_.loop(k_.div(ob0, k_.i64(per_group)), groups, 1, [&](Value* g) {
    Value* first = k_.mul(g, k_.i64(per_group));
    Env at = env;
    at.axes[static_cast<size_t>(view_.contraction.vec)] = {k_.mul(g, k_.i64(group_out)), false, group_out};
    blocks_of_group(at, k_.max(ob0, first), k_.min(ob1, k_.add(first, k_.i64(per_group))));
  });
}

void emit_winograd(Kernel& k) {
  StageEmitter stage(k, 0);
  const auto found = view_winograd(k.spec.region, 0);
  OPFUSE_CHECK(std::holds_alternative<WinogradView>(found), "{}", std::get<std::string>(found));
  const auto& view = std::get<WinogradView>(found);
  stage.unguard(view.contraction.data);
  WinogradEmitter emitter(k, stage, view);
  emit_tiled_parts(k, stage.fresh_env(1), {}, Dim(emitter.blocks()), emitter.tiles(),
                   [&](const Env& env, PartRange blocks, PartRange tiles) {
                     emitter.emit(env, blocks.begin, blocks.end, tiles.begin, tiles.end);
                   });
}

}  // namespace opfuse::cpu
