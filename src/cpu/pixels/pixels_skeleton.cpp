// Convolutions with pixels in the lanes, three times in the table: before those with channels in the lanes where that
// form is faster, for dense results or for all, and behind them for layouts that they do not take.
#include <algorithm>

#include "cpu/layout_wish.hpp"
#include "cpu/pixels/pixel_view.hpp"
#include "cpu/schedules.hpp"
#include "cpu/skeletons.hpp"

namespace opfuse {
namespace {

bool pays(const Region& region, const TargetInfo& target) { return is_single(region) && pixels_pay(region, target); }

bool fits(const Region& region, const TargetInfo&) { return is_single(region) && view_pixels(region).has_value(); }

/// Lanes of pixels take any layout; in a network of blocked channels the input is one of them.
void wish(const Region& region, const TargetInfo& target, LayoutWish& wish) {
  const PixelView view = *view_pixels(region);
  const int data = region.stages[0].reads[static_cast<size_t>(view.data)].index;
  if (view.channels() >= target.lanes_f32())
    wish.params[static_cast<size_t>(data)] = Layout::channels_blocked(4, 1, target.lanes_f32());
  wish_like_output(region, region.stages[0], 1, target, wish);
}

std::vector<Candidate> schedules(const Region& region, const std::vector<ParamLayout>& layouts,
                                 const TargetInfo& target, size_t most) {
  return erased("pixels", schedule_pixels(region, layouts, target, most));
}

std::vector<Candidate> dense_schedules(const Region& region, const std::vector<ParamLayout>& layouts,
                                       const TargetInfo& target, size_t most) {
  if (!pixels_pay_for_dense(region, layouts, target)) return {};
  return schedules(region, layouts, target, most);
}

constexpr int64_t kFewTaps = 9;

/// A depthwise convolution of a few taps, dense maps on both sides: the plain nest has pixels in the lanes too and
/// reads rows where they lie. 0.44 to 0.9 of the time of packed rows with 3x3 taps, 1.07 to 1.5 with 5x5 (AMD Zen 3).
bool leaves_to_nest(const Region& region, const std::vector<ParamLayout>& layouts) {
  const Stage& stage = region.stages[0];
  const auto view = view_pixels(region);
  if (stage.anchor != Anchor::window || !view || !view->plain() || view->taps() > kFewTaps) return false;
  const Read& data = stage.reads[static_cast<size_t>(view->data)];
  const auto is_dense = [&](int param) { return param < 0 || layouts[static_cast<size_t>(param)].layout.is_dense(); };
  return is_dense(data.index) && std::all_of(stage.outputs.begin(), stage.outputs.end(),
                                             [&](const StageOutput& o) { return is_dense(o.param); });
}

std::vector<Candidate> any_schedules(const Region& region, const std::vector<ParamLayout>& layouts,
                                     const TargetInfo& target, size_t most) {
  if (leaves_to_nest(region, layouts)) return {};
  return schedules(region, layouts, target, most);
}

double cost(const Region& region, const Schedule&, const TargetInfo& target) {
  return pixel_lane_cycles(region, target);
}

}  // namespace

Skeleton pixels_skeleton() {
  return {.name = "pixels",
          .form = kAsLowered,
          .see = pays,
          .wish = wish,
          .candidates = schedules,
          .verify = verify_as<PixelSchedule>,
          .cost = cost};
}

/// Weights lie as others wish: only layouts tell that the result is dense.
Skeleton dense_pixels_skeleton() {
  Skeleton skeleton = any_pixels_skeleton();
  skeleton.candidates = dense_schedules;
  return skeleton;
}

Skeleton any_pixels_skeleton() {
  Skeleton skeleton = pixels_skeleton();
  skeleton.see = fits;
  skeleton.candidates = any_schedules;
  skeleton.wish = nullptr;
  return skeleton;
}

}  // namespace opfuse
