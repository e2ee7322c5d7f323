// Chooses the skeleton: the schedule says which one was meant.
#include "base/fail.hpp"
#include "cpu/emit/skeletons.hpp"
#include "cpu/window/mean_view.hpp"

namespace opfuse::cpu {

void emit_kernel(Kernel& k) {
  const Schedule& s = k.spec.schedule;
  const size_t stages = stages_without_means(k.spec.region);
  if (k.spec.region.stages[0].anchor == Anchor::scatter) return emit_scatter(k);
  if (stages > 2) return emit_attention(k);
  if (stages > 1) return emit_chain(k);
  if (k.spec.region.stages.size() > 1) return emit_window(k);
  if (s.get("winograd_h", 0) > 0) return emit_winograd(k);
  if (s.get("pixels", 0) > 0) return emit_pixels(k);
  if (s.get("nv", 0) > 0) return emit_contraction(k);
  if (s.get("tile_w", 0) > 0) return emit_window(k);
  emit_generic(k);
}

}  // namespace opfuse::cpu
