// Recognition of windows: one reduction over taps that slide over data. Products of depthwise convolutions, of f32 or
// of codes, are windows too, and so are the greatest of bytes.
#include <algorithm>
#include <cmath>

#include "kernel/reads.hpp"
#include "kernel/view_parts.hpp"
#include "region/dependence.hpp"

namespace opfuse {
namespace {

/// x w of u8 or i8 and i8 codes, widened to i32.
bool multiplies_codes(const Expr& e) {
  if (e.op() != ExprOp::mul || e.dtype() != DType::i32) return false;
  const auto widened = [&](size_t side, DType from) {
    const Expr& x = e.args()[side];
    return x.op() == ExprOp::cast && x.args()[0].dtype() == from;
  };
  return (widened(0, DType::u8) || widened(0, DType::i8)) && widened(1, DType::i8);
}

/// Of a product of codes with a tap outside the data.
std::optional<int64_t> constant_factor(const Expr& e) {
  if (e.op() != ExprOp::mul) return std::nullopt;
  for (const Expr& x : e.args())
    if (x.is_constant()) return x.integer_value();
  return std::nullopt;
}

bool is_zero(const Expr& e) {
  return e.is_constant() && (is_float(e.dtype()) ? e.value() == 0 : e.integer_value() == 0);
}

}  // namespace

std::variant<WindowView, std::string> view_window(const Region& region, int index) {
  const Stage& stage = region.stages[static_cast<size_t>(index)];
  if (stage.reductions.size() != 1) return "not one reduction";
  const Reduction& r = stage.reductions[0];
  const bool codes = r.kind == ReduceKind::sum && multiplies_codes(r.value);
  const bool bytes = r.kind == ReduceKind::max && r.value.dtype() == DType::u8;
  if (r.value.dtype() != DType::f32 && !codes && !bytes) return "not f32";
  if (r.kind == ReduceKind::product) return "a product";
  if (mentions(r.value, ExprOp::coord)) return "the taps depend on coordinates";
  WindowView view;
  const auto domain = static_cast<int>(stage.domain.size());
  for (int i : reads_used(r.value)) {
    const auto axes = axes_of(stage.reads[static_cast<size_t>(i)].map);
    const bool taps = std::any_of(axes.begin(), axes.end(), [&](int a) { return a >= domain; });
    const bool outer = std::count_if(axes.begin(), axes.end(), [&](int a) { return a < domain; }) > 1;
    if (!taps || !outer || is_constant(region, stage.reads[static_cast<size_t>(i)])) continue;
    if (view.data >= 0) return "two reads slide";
    view.data = i;
  }
  if (view.data < 0) return "nothing slides";
  const Read& read = stage.reads[static_cast<size_t>(view.data)];
  if (has_dynamic(read.map)) return "dynamic index";
  int vec_dim = -1;  // the first axis that stands alone, unstrided, and is not a window's: the channels
  for (size_t d = 0; d < read.map.dims.size() && d < 2; ++d) {
    const IndexExpr& e = read.map.dims[d];
    if (e.terms.size() == 1 && e.terms[0].axis < domain && plain(e.terms[0]) && e.terms[0].coef == Dim(1) &&
        e.offset == Dim(0) && stays_inside(region, stage, view.data, d)) {
      vec_dim = static_cast<int>(d);
      view.vec = e.terms[0].axis;
    }
  }
  if (view.vec < 0) return "no channel axis";
  auto sliding = sliding_dims(stage, read.map, shape_read_by(region, read), view.vec, -1, vec_dim);
  if (!sliding || !each_axis_once(*sliding)) return "the data's index map is not a sliding window";
  view.sliding = *sliding;
  view.value = assume_inside(r.value, view.data, true);
  if (mentions(view.value, ExprOp::in_bounds)) return "another guard";
  if (mentions(r.value, ExprOp::in_bounds)) {
    view.guarded = true;
    const Expr outside = assume_inside(r.value, view.data, false);
    const double identity = r.kind == ReduceKind::sum ? 0 : r.kind == ReduceKind::max ? -INFINITY : INFINITY;
    const bool zero_product = r.kind == ReduceKind::sum && outside.op() == ExprOp::mul &&
                              std::any_of(outside.args().begin(), outside.args().end(), is_zero);
    const auto padding = codes ? constant_factor(outside) : std::nullopt;
    if (padding)
      view.padding = *padding;
    else if (!zero_product &&
             !(bytes ? is_zero(outside) : !codes && outside.is_constant() && outside.value() == identity))
      return "padding takes part";
  }
  for (int a = 0; a < domain; ++a)
    if (a != view.vec) view.outer.push_back(a);
  for (int a = domain; a < domain + static_cast<int>(stage.reduce.size()); ++a) view.taps.push_back(a);
  if (!view.outer.empty()) {
    view.pixel = view.outer.back();
    view.outer.pop_back();
  }
  return view;
}

}  // namespace opfuse
