// Windows want their images with channels in blocks of a vector: lanes then hold channels, and every tap is one load.
#include "cpu/layout_wish.hpp"
#include "cpu/skeletons.hpp"

namespace opfuse {
namespace {

void wish_operands(const Region& region, const Stage& stage, const WindowView& view, const TargetInfo& target,
                   LayoutWish& wish) {
  const int64_t lanes = target.lanes_f32();
  for (const Read& r : stage.reads) {
    if (r.stage >= 0) continue;
    const Param& p = region.params[static_cast<size_t>(r.index)];
    const size_t rank = p.type.shape.rank();
    if (rank < 3) continue;
    for (size_t d = 0; d < r.map.dims.size(); ++d) {
      const IndexExpr& e = r.map.dims[d];
      if (e.dynamic || e.terms.size() != 1 || e.terms[0].axis != view.vec) continue;
      wish.params[static_cast<size_t>(r.index)] = Layout::channels_blocked(rank, static_cast<int>(d), lanes);
    }
  }
}

}  // namespace

void wish_windows(const Region& region, size_t first, const TargetInfo& target, LayoutWish& wish) {
  for (size_t s = first; s < region.stages.size(); ++s) {
    const auto found = view_window(region, static_cast<int>(s));
    const auto* view = std::get_if<WindowView>(&found);
    if (!view) continue;
    wish_operands(region, region.stages[s], *view, target, wish);
    wish_like_output(region, region.stages[s], view->vec, target, wish);
  }
}

}  // namespace opfuse
