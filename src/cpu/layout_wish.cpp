#include "cpu/layout_wish.hpp"

namespace opfuse {

void wish_like_output(const Region& region, const Stage& stage, int vec, const TargetInfo& target, LayoutWish& wish) {
  const auto block = [&](int param, const IndexMap& map) {
    const size_t rank = region.params[static_cast<size_t>(param)].type.shape.rank();
    if (rank < 3 || wish.params[static_cast<size_t>(param)]) return;
    for (size_t d = 0; d < map.dims.size(); ++d)
      if (map.dims[d].terms.size() == 1 && map.dims[d].terms[0] == IndexTerm{1, vec, 1, 0} && !(rank == 3 && d == 2))
        wish.params[static_cast<size_t>(param)] =
            Layout::channels_blocked(rank, static_cast<int>(d), target.lanes_f32());
  };
  for (const StageOutput& o : stage.outputs)
    if (o.param >= 0) block(o.param, o.map);
  for (const StageOutput& o : stage.outputs)
    o.value.visit([&](const Expr& e) {
      if (e.op() != ExprOp::read) return;
      const Read& r = stage.reads[static_cast<size_t>(e.index())];
      if (r.stage < 0 && r.map.dims.size() >= 3) block(r.index, r.map);
    });
}

}  // namespace opfuse
