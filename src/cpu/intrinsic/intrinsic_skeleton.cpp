// y[rows, columns] = epilogue(sum over K of prologue(data)[rows, K] * weights[K, columns]); weights are constant.
#include <fmt/format.h>

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/intrinsic/intrinsic.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/skeletons.hpp"

namespace opfuse {
namespace {

constexpr int64_t kPartsOfOpenRows = 16;

const Param& param_of(const Region& region, int read) {
  return region.params[static_cast<size_t>(region.stages[0].reads[static_cast<size_t>(read)].index)];
}

bool never(const Region&, const TargetInfo&) { return false; }

std::optional<std::string> check(const Schedule& schedule, const Region& region,
                                 const std::vector<ParamLayout>& layouts, const TargetInfo&) {
  if (auto why = verify_fields<IntrinsicSchedule>(schedule)) return why;
  if (auto why = intrinsic_misfit(region)) return why;
  const auto s = typed<IntrinsicSchedule>(schedule);
  const auto view = std::get<ContractionView>(view_contraction(region, 0));
  const auto weights = static_cast<size_t>(region.stages[0].reads[static_cast<size_t>(view.weights)].index);
  const size_t rank = region.params[weights].type.shape.rank();
  if (layouts[weights].layout != intrinsic_weights(view, rank, s.columns, s.depth))
    return "columns and depth of weights that do not lie in tiles";
  return std::nullopt;
}

}  // namespace

bool has_intrinsics(const TargetInfo& target) {
  const std::vector<CompositeRow>& rows = capabilities_of(target).composites;
  return std::any_of(rows.begin(), rows.end(), [](const CompositeRow& row) { return row.intrinsic.given(); });
}

std::optional<int64_t> intrinsic_of(const TargetInfo& target, std::string_view pattern) {
  const std::vector<CompositeRow>& rows = capabilities_of(target).composites;
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].intrinsic.given() && rows[i].name.text == pattern) return static_cast<int64_t>(i);
  return std::nullopt;
}

const Intrinsic& intrinsic_at(const TargetInfo& target, int64_t composite) {
  return capabilities_of(target).composites.at(static_cast<size_t>(composite)).intrinsic;
}

std::optional<std::string> intrinsic_misfit(const Region& region) {
  if (!is_single(region)) return "a tile computes one product, and this group has several stages";
  const auto found = view_contraction(region, 0);
  if (const auto* why = std::get_if<std::string>(&found)) return "a tile computes products of f32: " + *why;
  const auto& view = std::get<ContractionView>(found);
  const Stage& stage = region.stages[0];
  if (view.sums() > 1) return "a tile computes one sum, and this group has several";
  if (has_taps(stage, view) || view.guarded || !view.phases.empty())
    return "a tile multiplies matrices; taps of a window would have to be laid out as columns first";
  if (view.group_out) return "a tile multiplies all channels; groups of them would have to be apart";
  if (view.channel < 0) return "a tile sums over K, and here is one element";
  const Read& weights = stage.reads[static_cast<size_t>(view.weights)];
  if (weights.stage >= 0 || param_of(region, view.weights).role != ParamRole::constant)
    return "a tile's weights are packed when compiling, so they must be constant";
  return std::nullopt;
}

Layout intrinsic_weights(const ContractionView& view, size_t rank, int64_t columns, int64_t depth) {
  Layout layout = Layout::dense(rank);
  for (const int dim : {view.weights_channel_dim, view.weights_vec_dim}) {
    std::erase(layout.order, dim);
    layout.order.insert(layout.order.begin(), dim);
  }
  if (depth > 1) layout.blocks.push_back({view.weights_channel_dim, depth});
  layout.blocks.push_back({view.weights_vec_dim, columns});
  return layout;
}

std::vector<int> intrinsic_row_axes(const Stage& stage, const ContractionView& view) {
  std::vector<int> axes;
  for (int axis = 0; axis < static_cast<int>(stage.domain.size()); ++axis)
    if (axis != view.vec) axes.push_back(axis);
  return axes;
}

LayoutWish wish_intrinsic(const Region& region, const Intrinsic& tile) {
  LayoutWish wish;
  for (const Param& param : region.params) wish.params.emplace_back(Layout::dense(param.type.shape.rank()));
  const auto view = std::get<ContractionView>(view_contraction(region, 0));
  const auto weights = static_cast<size_t>(region.stages[0].reads[static_cast<size_t>(view.weights)].index);
  wish.params[weights] = intrinsic_weights(view, region.params[weights].type.shape.rank(), tile.columns, tile.depth);
  wish.writes_padding = false;
  return wish;
}

Schedule schedule_intrinsic(const Region& region, int64_t composite, const TargetInfo& target) {
  const Intrinsic& tile = intrinsic_at(target, composite);
  const Stage& stage = region.stages[0];
  const auto view = std::get<ContractionView>(view_contraction(region, 0));
  IntrinsicSchedule s;
  s.composite = composite;
  s.rows = tile.rows, s.columns = tile.columns, s.depth = tile.depth;
  Dim rows = 1;
  for (int axis : intrinsic_row_axes(stage, view)) rows = rows * stage.domain[static_cast<size_t>(axis)];
  const int64_t columns = axis_extent(stage, view.vec).value(), depth = axis_extent(stage, view.channel).value();
  if (const auto known = rows.constant()) {
    split_parts(s, wanted_parts(static_cast<double>(work_of(stage)), target), ceil_of(columns, s.columns),
                ceil_of(*known, s.rows), static_cast<double>(4 * columns * depth),
                static_cast<double>(4 * *known * depth), target);
  } else {
    s.parts_o = 1, s.parts_p = kPartsOfOpenRows;
  }
  return erased("intrinsic", s);
}

Skeleton intrinsic_skeleton() { return {.name = "intrinsic", .form = kAsLowered, .see = never, .verify = check}; }

}  // namespace opfuse
