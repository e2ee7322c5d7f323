// A convolution and a window behind it (pooling, depthwise convolution). A part goes block by block of channels, band
// by band of the window's rows:
//
//   for channel blocks of the part:
//     for bands of the part:
//       move the rows that the band before has computed and this one needs to the front
//       convolution of the other rows into scratch      rows at the first border of a part: both neighbours compute
//       them window over the band
//
//     means of the result, if they are wanted: its rows are summed while they are there
//
//   scratch [channel vectors of a block][rows a band needs][Q][lanes] [sums of those channel vectors]
#include "base/fail.hpp"
#include "cpu/emit/contraction/contraction.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/parts.hpp"
#include "cpu/emit/window/band_means.hpp"
#include "cpu/emit/window/window.hpp"
#include "cpu/window/chain_cut.hpp"
#include "cpu/window/chain_schedule.hpp"
#include "cpu/window/chain_view.hpp"

namespace opfuse::cpu {
namespace {

class Chain {
 public:
  Chain(Kernel& k, const ChainView& view)
      : k_(k),
        view_(view),
        first_(k.spec.region.stages[0]),
        second_(k.spec.region.stages[1]),
        vectors_(typed<ChainSchedule>(k.spec.schedule).nv),
        band_(typed<ChainSchedule>(k.spec.schedule).band),
        lanes_(lanes_of(k.target)),
        row_(first_.domain[3].value() * lanes_),
        held_(held_rows(k.spec.region, view, band_)),
        means_(with_scratch(k, vectors_ * held_ * row_ * 4), view_means(k.spec.region), vectors_) {}

  void emit() {
    Env start;
    start.extents = second_.domain;
    start.extents.insert(start.extents.end(), second_.reduce.begin(), second_.reduce.end());
    start.axes.assign(start.extents.size(), {k_.i64(0), false, 0});
    const Dim blocks = ceil_div(first_.domain[1], Dim(vectors_ * lanes_));
    emit_tiled_parts(k_, start, {0}, blocks, second_.domain[2], [&](const Env& env, PartRange ob, PartRange rows) {
      k_.loop(ob.begin, ob.end, 1, [&](Value* block) {
        means_.clear();
        k_.loop(rows.begin, rows.end, band_, [&](Value* row) { emit_band(env, block, rows, row); });
        store_means(env, block, rows.begin);
      });
    });
  }

 private:
  static Kernel& with_scratch(Kernel& k, int64_t bytes) {
    k.scratch_bytes = bytes;
    return k;
  }

  Kernel& k_;
  const ChainView& view_;
  const Stage &first_, &second_;
  int64_t vectors_, band_, lanes_;
  int64_t row_;   ///< floats of a row of one vector
  int64_t held_;  ///< rows in scratch
  BandMeans means_;

  /// The first row of the convolution that row `y` of the window needs.
  Value* first_row(Value* y) {
    return k_.max(k_.i64(0), k_.add(k_.mul(y, k_.i64(view_.rows.stride)), k_.i64(view_.rows.offset)));
  }
  /// One past the last that the row before `y` needs.
  Value* end_row(Value* y) {
    Value* last = k_.mul(k_.sub(y, k_.i64(1)), k_.i64(view_.rows.stride));
    return k_.min(k_.dim(first_.domain[2]), k_.add(last, k_.i64(view_.rows.offset + view_.rows_for(1))));
  }

  /// The scratch as a tensor whose logical origin lies where coordinate 0 would be.
  Operand local(Value* vector, Value* row) {
    Operand o;
    o.dtype = DType::f32;
    o.shape = Shape(first_.domain);
    o.layout = Layout::channels_blocked(4, 1, lanes_);
    o.strides = {0, held_ * row_, row_, lanes_, 1};
    o.safe = k_.add(k_.mul(vector, k_.i64(held_ * row_)), k_.mul(row, k_.i64(row_)));
    o.base = k_.element(k_.scratch, DType::f32, k_.sub(k_.i64(0), o.safe));
    return o;
  }

  /// Rows that lay `distance` rows further back, `count` of them, to the front of every vector's.
  void move_rows(Value* count, Value* distance) {
    llvm::Type* type = k_.lanes(k_.b.getFloatTy(), static_cast<int>(lanes_));
    const llvm::Align align(static_cast<uint64_t>(lanes_) * 4);
    Value* from = k_.mul(distance, k_.i64(row_));
    for (int64_t v = 0; v < vectors_; ++v)
      k_.loop(k_.i64(0), k_.mul(count, k_.i64(row_)), lanes_, [&](Value* at) {
        Value* to = k_.add(at, k_.i64(v * held_ * row_));
        Value* x = k_.b.CreateAlignedLoad(type, k_.element(k_.scratch, DType::f32, k_.add(to, from)), align);
        k_.b.CreateAlignedStore(x, k_.element(k_.scratch, DType::f32, to), align);
      });
  }

  void emit_band(const Env& env, Value* block, PartRange rows, Value* y0) {
    Value* y1 = k_.min(k_.add(y0, k_.i64(band_)), rows.end);
    Value* low = first_row(y0);
    Value* high = end_row(y1);
    Value* known = k_.b.CreateSelect(k_.b.CreateICmpEQ(y0, rows.begin), low, k_.max(low, end_row(y0)));
    move_rows(k_.sub(known, low), k_.sub(low, first_row(k_.sub(y0, k_.i64(band_)))));
    Value* vector = k_.mul(block, k_.i64(vectors_));
    Value* next = k_.add(block, k_.i64(1));
    const Operand middle = local(vector, low);
    StageEmitter first(k_, 0, {{{0, 0}, middle}}), second(k_, 1, locals_of_second(k_, middle));
    const ContractionEmitter convolution(k_, first, view_.first);
    Env at = first.fresh_env(1);
    at.axes[0] = env.axes[0];
    convolution.emit(at, {block, next}, {known, high});
    second.unguard(view_.second.data);
    WindowEmitter window(k_, second, view_.second, typed<ChainSchedule>(k_.spec.schedule).window_w);
    Env over = second.fresh_env(1);
    over.axes[0] = env.axes[0];
    means_.attach(window, vector);
    window.emit(over, vector, end_of(block, window), y0, y1);
  }

  /// One past the last channel vector of a block.
  Value* end_of(Value* block, const WindowEmitter& window) {
    return k_.min(k_.mul(k_.add(block, k_.i64(1)), k_.i64(vectors_)), k_.i64(window.blocks()));
  }

  static StageEmitter::Locals locals_of_second(const Kernel& k, const Operand& middle) {
    StageEmitter::Locals locals = not_stored(view_means(k.spec.region));
    locals[{0, 0}] = middle;
    return locals;
  }

  void store_means(const Env& env, Value* block, Value* row) {
    StageEmitter second(k_, 1, locals_of_second(k_, Operand{}));
    const WindowEmitter window(k_, second, view_.second, 1);
    means_.store(window, env, k_.mul(block, k_.i64(vectors_)), end_of(block, window), row);
  }
};

}  // namespace

void emit_chain(Kernel& k) {
  const auto found = view_chain(k.spec.region);
  OPFUSE_CHECK(std::holds_alternative<ChainView>(found), "{}", std::get<std::string>(found));
  const auto& view = std::get<ChainView>(found);
  Chain(k, view).emit();
  const auto s = typed<ChainSchedule>(k.spec.schedule);
  const int64_t foretold = chain_scratch(k.spec.region, view, s.nv, s.band, k.target);
  OPFUSE_CHECK(k.scratch_bytes == foretold, "{} bytes of scratch, {} foretold", k.scratch_bytes, foretold);
}

}  // namespace opfuse::cpu
