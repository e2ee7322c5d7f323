// Weights lie in blocks of output channels, data in blocks of input channels or one by one, and both agree on how many
// of these a step takes.
#include "cpu/contraction/operand_fit.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/data_copies.hpp"
#include "cpu/contraction/decoded_weights.hpp"
#include "cpu/contraction/matrix.hpp"
#include "cpu/contraction/packed_weights.hpp"
#include "cpu/schedules.hpp"
#include "region/single_stage.hpp"

namespace opfuse {

int64_t stackable_rows(const Region& region, const ContractionView& view) {
  const Stage& stage = region.stages[0];
  const int row = row_axis_of(view);
  const bool known = view.pixel < 0 || axis_extent(stage, view.pixel).is_constant();
  if (row < 0 || !is_single_stage(region) || !known || !axis_extent(stage, row).is_constant()) return 1;
  for (const SlidingDim& d : view.sliding)  // padding without taps is decided row by row
    if (d.axis == row && view.guarded && (d.tap < 0 || !d.extent.is_constant())) return 1;
  return axis_extent(stage, row).value();
}

bool divides_group(const Stage& stage, const ContractionView& view, int64_t block) {
  return !view.group_out || channel_depth(stage, view) % block == 0;
}

namespace {

bool stored_contiguous(const ParamLayout& l, int dim) {
  return !l.layout.blocks.empty() && l.layout.blocks.back().axis == dim && l.strides.back() == Dim(1);
}

/// Channels of the groups in one vector of outputs lie in whole vectors or in an aligned part of one. Those of the last
/// vector's padding exist too: 8 outputs of 4 groups are half a vector, whose other half would read a block of data
/// more.
bool permutable(int64_t outputs, int64_t group_out, int64_t depth, int64_t lanes, int64_t data_block) {
  if (lanes % group_out != 0 || depth > 16 || data_block != lanes) return false;
  const int64_t span = lanes / group_out * depth, channels = outputs / group_out * depth;
  if (ceil_of(outputs, lanes) * span > ceil_of(channels, lanes) * lanes) return false;
  return lanes % span == 0 || (span % lanes == 0 && span / lanes <= 4);
}

bool outputs_fit(const Stage& stage, const std::vector<ParamLayout>& layouts, int vec, int64_t lanes) {
  for (const StageOutput& o : stage.outputs) {
    if (o.param < 0) continue;
    for (const Block& b : layouts[static_cast<size_t>(o.param)].layout.blocks) {
      const auto& terms = o.map.dims[static_cast<size_t>(b.axis)].terms;
      if (terms.size() != 1 || !(terms[0] == IndexTerm{1, vec, 1, 0}) || b.factor % lanes != 0) return false;
    }
  }
  return true;
}

/// `packed`: what the kernel makes of the weights, whose parameter the data may be too, as it lies.
std::optional<OperandFit> fit_layouts(const Stage& stage, const ContractionView& view,
                                      const std::vector<ParamLayout>& layouts, int64_t lanes,
                                      const ParamLayout* packed = nullptr) {
  const auto layout_of = [&](int read) -> const ParamLayout& {
    return layouts[static_cast<size_t>(stage.reads[static_cast<size_t>(read)].index)];
  };
  const ParamLayout& w = packed ? *packed : layout_of(view.weights);
  if (!std::all_of(view.gates.begin(), view.gates.end(), [&](int gate) { return layout_of(gate) == w; }))
    return std::nullopt;
  const ParamLayout& d = layout_of(view.data);
  const int64_t depth = channel_depth(stage, view);
  const int64_t block = w.layout.block_of(view.weights_vec_dim);
  if (!stored_contiguous(w, view.weights_vec_dim) || w.layout.blocks.back().factor != block || block % lanes != 0)
    return std::nullopt;
  const int64_t data_block = d.layout.block_of(view.data_channel_dim),
                weight_block = view.channel < 0 ? 1 : w.layout.block_of(view.weights_channel_dim);
  const int64_t step = std::max(data_block, weight_block);
  const bool whole_groups = !view.group_out || view.group_out % block == 0;
  OperandFit fit;
  if (!whole_groups || (view.group_out && step > 1 && !divides_group(stage, view, step))) {
    if ((!whole_groups && block != lanes) || weight_block > 1 || view.value.op() != ExprOp::read) return std::nullopt;
    fit.grouped =
        !whole_groups && permutable(axis_extent(stage, view.vec).value(), view.group_out, depth, lanes, data_block) ? 1
                                                                                                                    : 2;
  } else if (step % data_block || step % weight_block ||
             (data_block > 1 && weight_block > 1 && data_block != weight_block)) {
    return std::nullopt;
  }
  for (const Block& b : d.layout.blocks)
    if (b.axis != view.data_channel_dim) return std::nullopt;
  if (!outputs_fit(stage, layouts, view.vec, lanes)) return std::nullopt;
  fit.vectors = block / lanes;
  if (fit.grouped == 1)
    fit.step = depth;
  else if (fit.grouped == 2)
    fit.step = std::min<int64_t>(depth, 4);
  else
    fit.step = step > 1 ? step : std::min<int64_t>(depth, 8);
  return fit;
}

/// Data to be widened lie in blocks of as many channels as a vector has lanes, and no step takes channels of two
/// groups.
bool holds_whole_vectors(const Stage& stage, const ContractionView& view, const std::vector<ParamLayout>& layouts,
                         const TargetInfo& target) {
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  if (data.stage >= 0 || view.group_out || view.value.op() != ExprOp::read) return false;
  const ParamLayout& lies = layouts[static_cast<size_t>(data.index)];
  return stored_contiguous(lies, view.data_channel_dim) &&
         lies.layout.block_of(view.data_channel_dim) == view.types.lanes(target);
}

}  // namespace

std::optional<OperandFit> fit_operands(const Region& region, const ContractionView& view,
                                       const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  if (view.coded) {
    auto fit = fit_decoded(region, view, layouts, target);
    return fit && outputs_fit(stage, layouts, view.vec, view.types.lanes(target)) ? fit : std::nullopt;
  }
  if (view.types.unit() > 1) {
    const auto codes = fit_codes(region, view, layouts, target);
    if (!codes || !outputs_fit(stage, layouts, view.vec, view.types.lanes(target))) return std::nullopt;
    if (codes->joined && codes->vectors > kMatrixVectors) return std::nullopt;
    if (codes->joined) return OperandFit{codes->vectors, 0, codes->step, true};
    if (codes->paired) return OperandFit{codes->vectors, 0, codes->step, false, true};
    const Read& data = stage.reads[static_cast<size_t>(view.data)];
    const int64_t step = codes->vectors <= kMatrixVectors
                             ? matrix_step(stage, view, layouts[static_cast<size_t>(data.index)], codes->step, target)
                             : 0;
    return OperandFit{codes->vectors, 0, step ? step : codes->step, step > 0};
  }
  if (view.types.widens_data() && !holds_whole_vectors(stage, view, layouts, target)) return std::nullopt;
  if (!packs_weights(region, view)) return fit_layouts(stage, view, layouts, view.types.lanes(target));
  const int64_t block = packed_vectors(stage, view, stackable_rows(region, view), target) * view.types.lanes(target);
  const ParamLayout packed = packed_weights(region, view, block);
  return fit_layouts(stage, view, layouts, view.types.lanes(target), &packed);
}

}  // namespace opfuse
