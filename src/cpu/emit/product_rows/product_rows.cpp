// A product of matrices and the reduction of its rows. A part goes band by band of whole rows:
//
//   parts: batch x pieces of the bands
//   for bands of the part:
//     all columns of the product into scratch    (cpu/emit/contraction)
//     the rows of the band reduced, and stored   (cpu/emit/generic)
//
//   scratch [rows of a band][columns]
#include "base/fail.hpp"
#include "cpu/emit/contraction/contraction.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/generic/rows.hpp"
#include "cpu/product_rows/product_rows_schedule.hpp"
#include "cpu/product_rows/product_rows_view.hpp"

namespace opfuse::cpu {
namespace {

class ProductRows {
 public:
  ProductRows(Kernel& k, const ProductRowsView& view)
      : k_(k),
        view_(view),
        first_(k.spec.region.stages[0]),
        band_(typed<ProductRowsSchedule>(k.spec.schedule).band),
        row_(view.row_floats(k.target)) {
    k.scratch_bytes = view.scratch_bytes(band_, k.target);
  }

  void emit() {
    std::vector<int> batch;
    for (int axis = 0; axis < view_.row; ++axis) batch.push_back(axis);
    StageEmitter start(k_, 0, {{{0, 0}, Operand{}}});
    emit_tiled_parts(k_, start.fresh_env(1), batch, Dim(1), ceil_div(rows(), Dim(band_)),
                     [&](const Env& env, PartRange, PartRange bands) {
                       k_.loop(bands.begin, bands.end, 1, [&](Value* band) { emit_band(env, band); });
                     });
  }

 private:
  Kernel& k_;
  const ProductRowsView& view_;
  const Stage& first_;
  int64_t band_;  ///< rows
  int64_t row_;   ///< floats from one to the next

  const Dim& rows() const { return first_.domain[static_cast<size_t>(view_.row)]; }

  /// The scratch as a tensor whose logical origin lies where row 0 would be.
  Operand local(Value* begin) {
    Operand o;
    o.dtype = DType::f32;
    o.shape = Shape(first_.domain);
    o.layout = Layout::dense(first_.domain.size());
    o.strides.assign(first_.domain.size(), Dim(0));
    o.strides[static_cast<size_t>(view_.row)] = Dim(row_);
    o.strides.back() = Dim(1);
    o.safe = k_.mul(begin, k_.i64(row_));
    o.base = k_.element(k_.scratch, DType::f32, k_.sub(k_.i64(0), o.safe));
    return o;
  }

  void emit_band(const Env& env, Value* band) {
    Value* begin = k_.mul(band, k_.i64(band_));
    const auto all = rows().constant();
    Value* count = all && *all % band_ == 0 ? k_.i64(band_) : k_.min(k_.i64(band_), k_.sub(k_.dim(rows()), begin));
    const StageEmitter::Locals locals{{{0, 0}, local(begin)}};
    StageEmitter first(k_, 0, locals);
    const ContractionEmitter product(k_, first, view_.product, PixelBand{begin, count});
    product.emit(env, {k_.i64(0), k_.i64(product.blocks())}, {k_.i64(0), k_.i64(1)});
    emit_rows(k_, {1, view_.row, {begin, k_.add(begin, count)}}, locals, env);
  }
};

}  // namespace

void emit_product_rows(Kernel& k) {
  const auto found = view_product_rows(k.spec.region);
  OPFUSE_CHECK(std::holds_alternative<ProductRowsView>(found), "{}", std::get<std::string>(found));
  ProductRows(k, std::get<ProductRowsView>(found)).emit();
}

}  // namespace opfuse::cpu
