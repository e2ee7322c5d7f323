#include "cpu/contraction/decoded_weights.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/codes.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

constexpr int64_t kRowsOfWords = 32;  ///< widening a block of codes costs about as much as products of four rows
constexpr int64_t kVectors = 4;       ///< of columns in a block: their chains of sums hide the latency of multiply-adds

Layout in_blocks(int64_t columns) {
  Layout layout = Layout::dense(2);
  layout.order = {1, 0};
  layout.blocks.push_back({1, columns});
  return layout;
}

/// Codes, two of a word at a time.
bool sums_pairs(const ContractionView& view, const TargetInfo& target) {
  return view.types.sum == DType::i32 && view.types.unit() > 1 && !has_byte_products(target);
}

}  // namespace

int64_t rows_in_registers(const TargetInfo& target) { return target.vector_registers >= 32 ? 4 : 2; }

Dim rows_of_product(const Stage& stage, const ContractionView& view) {
  const int row = row_axis_of(view);
  const Dim pixels = view.pixel < 0 ? Dim(1) : axis_extent(stage, view.pixel);
  return row < 0 ? pixels : pixels * axis_extent(stage, row);
}

Decode decode_of(const Stage& stage, const ContractionView& view, const TargetInfo& target) {
  const auto rows = rows_of_product(stage, view).constant();
  if (!view.coded)
    return sums_pairs(view, target) && rows.value_or(0) >= kRowsOfWords ? Decode::into_scratch : Decode::none;
  if (!rows) return Decode::by_rows;
  return *rows <= rows_in_registers(target) ? Decode::in_registers : Decode::into_scratch;
}

std::optional<std::string> no_decoding_kernel(const Region& region, const TargetInfo& target) {
  if (!is_single_stage(region)) return "more than one stage";
  const auto found = view_products(region, 0);
  const auto* view = std::get_if<ContractionView>(&found);
  if (!view) return std::get<std::string>(found);
  if (!view->coded) return "its weights are not read as codes";
  if (skeleton_as_wished(region, target) == "contraction") return std::nullopt;
  return "its operands cannot lie as it needs them";
}

void wish_decoded(const Region& region, const ContractionView& view, const TargetInfo& target, LayoutWish& wish) {
  const Stage& stage = region.stages[0];
  const auto columns = axis_extent(stage, view.vec).constant();
  if (!columns) return;
  const int64_t lanes = view.types.lanes(target);
  const Layout layout = in_blocks(std::min(kVectors, ceil_of(*columns, lanes)) * lanes);
  for (const int read : {view.coded->words, view.coded->scales, view.coded->zeros})
    if (read >= 0) wish.params[static_cast<size_t>(stage.reads[static_cast<size_t>(read)].index)] = layout;
}

std::optional<OperandFit> fit_decoded(const Region& region, const ContractionView& view,
                                      const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  const int64_t lanes = view.types.lanes(target);
  const auto layout_of = [&](int read) -> const Layout& {
    return layouts[static_cast<size_t>(stage.reads[static_cast<size_t>(read)].index)].layout;
  };
  if (view.sums() > 1 || view.weights_vec_dim != 1) return std::nullopt;
  const int64_t block = layout_of(view.coded->words).block_of(1);
  if (block % lanes != 0) return std::nullopt;
  for (const int read : {view.coded->words, view.coded->scales, view.coded->zeros})
    if (read >= 0 && !(layout_of(read) == in_blocks(block))) return std::nullopt;
  const Layout& data = layout_of(view.data);
  const int64_t data_block = data.block_of(view.data_channel_dim);
  for (const Block& b : data.blocks)
    if (b.axis != view.data_channel_dim || data.blocks.size() > 1) return std::nullopt;
  if (data_block > 1 && data_block % view.coded->unit() != 0) return std::nullopt;
  OperandFit fit;
  fit.vectors = block / lanes;
  fit.step = data_block > 1 ? data_block : std::min<int64_t>(channel_depth(stage, view), 8);
  return fit;
}

}  // namespace opfuse
