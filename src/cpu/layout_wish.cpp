// The layouts that a region's skeleton wants for its operands.
#include <algorithm>

#include "cpu/contraction/overlap.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/pixels/pixel_view.hpp"
#include "cpu/schedules.hpp"
#include "cpu/window/mean_view.hpp"
#include "kernel/collapse.hpp"

namespace opfuse {
namespace {

/// Output channels that share weights: a group's, when there are groups.
int64_t channels_of(const Stage& stage, const ContractionView& view) {
  if (view.group_out) return view.group_out;
  return axis_extent(stage, view.vec).constant().value_or(0);
}

/// Vectors per block that keep blocks inside groups; 0: no vector fits.
int64_t vectors_in_group(int64_t wanted, const ContractionView& view, int64_t lanes) {
  if (!view.group_out) return wanted;
  for (; wanted > 0; --wanted)
    if (view.group_out % (wanted * lanes) == 0) return wanted;
  return 0;
}

/// The tile's problem once neighbouring axes are merged (a pointwise convolution has one long row).
TileProblem tile_problem(const Region& region, const ContractionView& view) {
  const Stage& stage = region.stages[0];
  TileProblem problem;
  problem.channels = channels_of(stage, view);
  problem.sums = view.sums();
  problem.grouped = view.group_out != 0;
  problem.pixels = pixel_count(stage, view.pixel);
  problem.rows = stackable_rows(region, view);
  const bool pointwise =
      !view.guarded && view.taps.empty() &&
      std::all_of(view.sliding.begin(), view.sliding.end(), [](const SlidingDim& s) { return s.stride == 1; });
  if (!pointwise || view.outer.empty()) return problem;
  problem.pixels *= axis_extent(stage, view.outer.back()).constant().value_or(1);
  problem.rows = 1;
  return problem;
}

/// Dense rows of this many floats all start in one set of a first-level cache of 64 sets (4 KiB between them), which
/// has fewer ways than a tile has rows.
bool share_a_set(int64_t floats) { return floats * 4 % 4096 == 0; }

void wish_contraction(const Region& region, const ContractionView& view, const TargetInfo& target, LayoutWish& wish) {
  const Stage& stage = region.stages[0];
  const int64_t lanes = target.lanes_f32();
  const int64_t channels = channels_of(stage, view);
  const int64_t depth = channel_depth(stage, view);
  if (!channels || !depth) return;
  const RegisterTile tile = choose_tile(tile_problem(region, view), stage, view, target);
  const int64_t columns = std::max<int64_t>(1, vectors_in_group(tile.vectors / view.sums(), view, lanes)) * lanes;
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const Read& weights = stage.reads[static_cast<size_t>(view.weights)];
  if (weights.stage >= 0) return;
  const auto& params = region.params;
  const size_t data_rank = params[static_cast<size_t>(data.index)].type.shape.rank();
  const bool image = data_rank > 2;
  const auto all =
      params[static_cast<size_t>(data.index)].type.shape[static_cast<size_t>(view.data_channel_dim)].constant();
  const bool whole = !view.group_out || view.group_out % columns == 0;
  const bool blocked = image && whole && depth >= lanes && divides_group(stage, view, lanes);
  const bool features = data_rank == 3 && view.data_channel_dim == 2;
  if ((blocked && (!features || share_a_set(depth))) || (image && view.group_out && all.value_or(0) >= lanes))
    wish.params[static_cast<size_t>(data.index)] = Layout::channels_blocked(data_rank, view.data_channel_dim, lanes);
  if (params[static_cast<size_t>(weights.index)].role == ParamRole::constant) {
    Layout layout = Layout::dense(params[static_cast<size_t>(weights.index)].type.shape.rank());
    // the vector axis outermost, so that a block of weights is one stream
    std::erase(layout.order, view.weights_vec_dim);
    layout.order.insert(layout.order.begin(), view.weights_vec_dim);
    if (view.group_out && !blocked && view.channel >= 0) {  // the few channels of a group follow the taps
      std::erase(layout.order, view.weights_channel_dim);
      layout.order.push_back(view.weights_channel_dim);
    }
    if (blocked) layout.blocks.push_back({view.weights_channel_dim, lanes});
    layout.blocks.push_back({view.weights_vec_dim, columns});
    wish.params[static_cast<size_t>(weights.index)] = layout;
    for (int gate : view.gates) wish.params[static_cast<size_t>(stage.reads[static_cast<size_t>(gate)].index)] = layout;
  }
}

void wish_window(const Region& region, int index, const WindowView& view, const TargetInfo& target, LayoutWish& wish) {
  const Stage& stage = region.stages[static_cast<size_t>(index)];
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

/// Outputs and epilogue operands that have the output's shape follow it: channels in blocks of a vector. Rows of
/// features are as good dense.
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

bool constant_weights(const Region& region) {
  const auto c = view_contraction(region, 0);
  const auto* view = std::get_if<ContractionView>(&c);
  if (!view) return true;
  const Read& weights = region.stages[0].reads[static_cast<size_t>(view->weights)];
  return weights.stage < 0 && region.params[static_cast<size_t>(weights.index)].role == ParamRole::constant;
}

/// Products of two activations (attention) read rows of both: no blocks along rows.
void drop_last_axis(LayoutWish& wish) {
  for (auto& layout : wish.params)
    if (layout && layout->blocks.size() == 1 && layout->blocks[0].axis > 1) layout.reset();
}

/// Lanes of pixels take any layout; in a network of blocked channels the input is one of them.
void wish_pixels(const Region& region, const TargetInfo& target, LayoutWish& wish) {
  const PixelView view = *view_pixels(region);
  const int data = region.stages[0].reads[static_cast<size_t>(view.data)].index;
  if (view.channels() >= target.lanes_f32())
    wish.params[static_cast<size_t>(data)] = Layout::channels_blocked(4, 1, target.lanes_f32());
}

/// Attention packs what it reads itself, and its results have no padding.
LayoutWish wish_dense(const Region& region, LayoutWish wish) {
  for (size_t p = 0; p < region.params.size(); ++p)
    if (const size_t rank = region.params[p].type.shape.rank(); rank > 2) wish.params[p] = Layout::dense(rank);
  return wish;
}

}  // namespace

LayoutWish wish_layouts(const Region& original, const TargetInfo& target) {
  LayoutWish wish;
  wish.params.resize(original.params.size());
  if (original.stages.empty()) return wish;
  if (stages_without_means(original) > 2) return wish_dense(original, std::move(wish));
  if (pixels_pay(original, target)) {
    wish_pixels(original, target, wish);
    wish_like_output(original, original.stages[0], 1, target, wish);
    return wish;
  }
  Region region = original;
  if (region.stages.size() == 1) drop_unit_axes(region);
  int vec = -1;
  if (const auto c = view_products(region, 0); std::holds_alternative<ContractionView>(c)) {
    wish_contraction(region, std::get<ContractionView>(c), target, wish);
    vec = std::get<ContractionView>(c).vec;
  } else if (const auto w = view_window(region, 0); std::holds_alternative<WindowView>(w)) {
    wish_window(region, 0, std::get<WindowView>(w), target, wish);
    vec = std::get<WindowView>(w).vec;
  }
  if (vec < 0) return wish;
  wish_like_output(region, region.stages[0], vec, target, wish);
  if (!constant_weights(region)) drop_last_axis(wish);
  for (size_t s = 1; s < region.stages.size(); ++s)
    if (const auto w = view_window(region, static_cast<int>(s)); std::holds_alternative<WindowView>(w)) {
      wish_window(region, static_cast<int>(s), std::get<WindowView>(w), target, wish);
      wish_like_output(region, region.stages[s], std::get<WindowView>(w).vec, target, wish);
    }
  return wish;
}

}  // namespace opfuse
