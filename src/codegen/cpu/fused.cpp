// Convolution then pooling. A part computes the convolution rows its band of pooled rows needs into its
// scratch (rows at band borders are computed by both neighbours) and pools from there:
//
//   scratch [channel vectors of the part][rows of the band][Q][lanes]
#include "base/fail.hpp"
#include "base/integers.hpp"
#include "codegen/cpu/contraction.hpp"
#include "codegen/cpu/parts.hpp"
#include "codegen/cpu/skeletons.hpp"
#include "codegen/cpu/window.hpp"

namespace opfuse::cpu {
namespace {

struct Band {
  int64_t rows = 0;     ///< convolution rows a part holds at most
  int64_t vectors = 0;  ///< channel vectors a part holds at most
};

class Fused {
 public:
  explicit Fused(Kernel& k)
      : k_(k),
        conv_(std::get<ContractionView>(view_contraction(k.spec.region, 0))),
        pool_(std::get<WindowView>(view_window(k.spec.region, 1))) {}

  void emit() {
    const Schedule& s = k_.spec.schedule;
    const Stage& first = k_.spec.region.stages[0];
    const Stage& second = k_.spec.region.stages[1];
    for (const SlidingDim& d : pool_.sliding)
      if (d.axis == row_axis_of(pool_)) rows_ = &d;
    OPFUSE_CHECK(rows_, "the pooling has no rows");
    lanes_ = lanes_of(k_.target);
    const int64_t nv = s.get("nv", 1), blocks = ceil_of(first.domain[1].value(), nv * lanes_);
    const int64_t band = ceil_of(second.domain[2].value(), s.get("parts_p", 1));
    band_.rows = std::min(first.domain[2].value(), (band - 1) * rows_->stride + (taps() - 1) * rows_->dilation + 1);
    band_.vectors = ceil_of(blocks, s.get("parts_o", 1)) * nv;
    columns_ = first.domain[3].value();
    k_.scratch_bytes = band_.vectors * band_.rows * columns_ * lanes_ * 4;
    emit_parts(first, second, blocks, nv);
  }

 private:
  Kernel& k_;
  ContractionView conv_;
  WindowView pool_;
  const SlidingDim* rows_ = nullptr;
  Band band_;
  int64_t lanes_ = 1, columns_ = 1;

  int64_t taps() const { return axis_extent(k_.spec.region.stages[1], rows_->tap).value(); }

  /// The scratch as a tensor whose logical origin lies where coordinate 0 would be.
  Operand local(const Stage& stage, Value* first_vector, Value* first_row) {
    Operand o;
    o.dtype = DType::f32;
    o.shape = Shape(stage.domain);
    o.layout = Layout::channels_blocked(4, 1, lanes_);
    const int64_t row = columns_ * lanes_, vector = band_.rows * row;
    o.strides = {0, vector, row, lanes_, 1};
    o.safe = k_.add(k_.mul(first_vector, k_.i64(vector)), k_.mul(first_row, k_.i64(row)));
    o.base = k_.element(k_.scratch, DType::f32, k_.sub(k_.i64(0), o.safe));
    return o;
  }

  void emit_parts(const Stage& first, const Stage& second, int64_t blocks, int64_t nv) {
    Env start;
    start.extents = second.domain;
    start.extents.insert(start.extents.end(), second.reduce.begin(), second.reduce.end());
    start.axes.assign(start.extents.size(), {k_.i64(0), false, 0});
    emit_tiled_parts(k_, start, {0}, Dim(blocks), second.domain[2], [&](const Env& env, PartRange ob, PartRange rows) {
      Value* low = k_.add(k_.mul(rows.begin, k_.i64(rows_->stride)), k_.i64(rows_->offset));
      Value* high = k_.add(k_.mul(k_.sub(rows.end, k_.i64(1)), k_.i64(rows_->stride)),
                           k_.i64(rows_->offset + (taps() - 1) * rows_->dilation + 1));
      Value* r0 = k_.max(k_.i64(0), low);
      Value* r1 = k_.min(k_.dim(first.domain[2]), high);
      Value* v0 = k_.mul(ob.begin, k_.i64(nv));
      const Operand middle = local(first, v0, r0);
      StageEmitter conv(k_, 0, {{{0, 0}, middle}}), pool(k_, 1, {{{0, 0}, middle}});
      ContractionEmitter convolution(k_, conv, conv_);
      Env at = conv.fresh_env(1);
      at.axes[0] = env.axes[0];
      convolution.emit(at, ob.begin, ob.end, r0, r1);
      pool.unguard(pool_.data);
      WindowEmitter window(k_, pool, pool_, k_.spec.schedule.get("pool_w", 1));
      Env over = pool.fresh_env(1);
      over.axes[0] = env.axes[0];
      window.emit(over, v0, k_.min(k_.mul(ob.end, k_.i64(nv)), k_.i64(window.blocks())), rows.begin, rows.end);
    });
  }
};

}  // namespace

void emit_fused(Kernel& k) {
  if (k.spec.schedule.get("nv", 0) == 0)
    throw fail(E::codegen_failed, "a convolution and a pooling in one kernel need blocked layouts");
  Fused(k).emit();
}

}  // namespace opfuse::cpu
