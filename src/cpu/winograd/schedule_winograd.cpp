// The schedule of a Winograd convolution, when the layout of its weights says that it is one.
//
// A part transforms the data it needs in chunks of tiles whose transformed data, and the products of one block of
// output channels, stay in L2; the weights of its blocks stream past every chunk. Parts that cut output channels
// transform the data again, parts and chunks that cut tiles read the weights again: the cost model weighs the two.
#include "cpu/winograd/schedule_winograd.hpp"

#include "base/integers.hpp"
#include "tensor/winograd_codes.hpp"

namespace opfuse {
namespace {

bool blocked_by_lanes(const ParamLayout& l, const IndexMap& map, int axis, int64_t lanes, int64_t block) {
  for (const Block& b : l.layout.blocks) {
    const auto& terms = map.dims[static_cast<size_t>(b.axis)].terms;
    if (terms.size() != 1 || terms[0].axis != axis || (b.factor != lanes && block % b.factor)) return false;
  }
  return true;
}

WinogradSchedule schedule_of(const WinogradWork& work, const WinogradChoice& choice, const TargetInfo& target) {
  WinogradSchedule s;
  s.winograd_h = work.tile.h;
  s.winograd_w = work.tile.w;
  s.nv = work.vectors;
  s.tile_w = choice.width;
  s.chunk = choice.chunk;
  s.parts_o = choice.parts_o;
  s.parts_p = choice.parts_p;
  // each register tile of a block fetches its share of the weights of the next
  const int64_t lines = kWinogradUnrolled * work.vectors * work.lanes / target.line_floats();
  s.prefetch = ceil_of(lines, ceil_of(choice.chunk, choice.width));
  return s;
}

}  // namespace

std::vector<Ranked<WinogradPlan>> plan_winograd(const Region& region, const std::vector<ParamLayout>& layouts,
                                                const TargetInfo& target, int64_t threads, size_t most) {
  const auto found = view_winograd(region, 0);
  const auto* view = std::get_if<WinogradView>(&found);
  if (!view) return {};
  const ContractionView& c = view->contraction;
  const Stage& stage = region.stages[0];
  const Layout& weights = layouts[static_cast<size_t>(stage.reads[static_cast<size_t>(c.weights)].index)].layout;
  const ParamLayout& data = layouts[static_cast<size_t>(stage.reads[static_cast<size_t>(c.data)].index)];
  if (!weights.is_transformed()) return {};
  const int64_t lanes = target.lanes_f32(), block = weights.block_of(0);
  if (winograd::holds_codes(weights) != view->codes()) return {};
  if (data.layout.blocks != std::vector<Block>{{c.data_channel_dim, lanes}} || !(data.strides.back() == Dim(1)))
    return {};
  for (const StageOutput& o : stage.outputs)
    if (!blocked_by_lanes(layouts[static_cast<size_t>(o.param)], o.map, c.vec, lanes, block)) return {};
  const WinogradTile tile{weights.tile_h, weights.tile_w};
  const WinogradWork work = winograd_work(stage, *view, tile, block / lanes, target);
  std::vector<Ranked<WinogradPlan>> plans;
  for (const auto& [cycles, choice] : winograd_choices(work, target, threads, most))
    plans.push_back({cycles, {schedule_of(work, choice, target), work, choice}});
  return plans;
}

}  // namespace opfuse
