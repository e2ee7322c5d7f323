// How contractions want their operands to lie: images with channels in blocks of a vector, constant weights in blocks
// of as many output channels as a register tile holds, each block one stream.
#include <algorithm>

#include "base/integers.hpp"
#include "cpu/cache_sets.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/data_copies.hpp"
#include "cpu/contraction/decoded_weights.hpp"
#include "cpu/contraction/matrix.hpp"
#include "cpu/contraction/overlap.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/layout_wish.hpp"
#include "cpu/schedules.hpp"
#include "cpu/skeletons.hpp"

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
  problem.types = view.types;
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

/// Dense maps of channels that no cache holds together: every block of outputs fetches all of them again.
bool maps_collide(const Shape& shape, const ContractionView& view, int64_t depth, const TargetInfo& target) {
  int64_t pitch = view.types.data_bytes();
  for (size_t d = static_cast<size_t>(view.data_channel_dim) + 1; d < shape.rank(); ++d) {
    const auto extent = shape[d].constant();
    if (!extent) return false;
    pitch *= *extent;
  }
  return rows_collide(depth, pitch, target);
}

/// Codes and bf16 factors lie so: images in blocks of channels, rows as they are.
bool in_blocks(const Region& region, const ContractionView& view) {
  const Read& data = region.stages[0].reads[static_cast<size_t>(view.data)];
  const size_t rank = data.stage >= 0 ? 0 : region.params[static_cast<size_t>(data.index)].type.shape.rank();
  return rank > 2 && view.data_channel_dim + 1 < static_cast<int>(rank);
}

/// Channels of an image's block, and of a step of its weights: those of a register's row where matrices multiply it,
/// all its channels are in such rows and every group's are; without matrices few channels, where those are all.
int64_t block_of_codes(const Region& region, const ContractionView& view, bool narrow, const TargetInfo& target) {
  const int64_t lanes = view.types.lanes(target), row = matrix_channels(view.types);
  const Stage& stage = region.stages[0];
  if (narrow || !in_blocks(region, view)) return lanes;
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const Shape& shape = region.params[static_cast<size_t>(data.index)].type.shape;
  const auto all = shape[static_cast<size_t>(view.data_channel_dim)].constant();
  if (!may_multiply_matrices(stage, view, target))
    return view.types.unit() > 1 && all && *all <= kFewChannels ? kFewChannels : lanes;
  return all && *all % row == 0 && channel_depth(stage, view) % row == 0 ? row : lanes;
}

void wish_codes(const Region& region, const ContractionView& view, int64_t columns, int64_t block, bool joined,
                LayoutWish& wish) {
  const Stage& stage = region.stages[0];
  const auto at = [&](int read) { return static_cast<size_t>(stage.reads[static_cast<size_t>(read)].index); };
  const size_t rank = region.params[at(view.data)].type.shape.rank();
  if (in_blocks(region, view) && !joined)
    wish.params[at(view.data)] = Layout::channels_blocked(rank, view.data_channel_dim, block);
  if (view.channel >= 0 && region.params[at(view.weights)].role == ParamRole::constant)
    wish.params[at(view.weights)] =
        code_weights(view, region.params[at(view.weights)].type.shape.rank(), columns, block);
}

/// `narrow`: images in no larger blocks than a vector's.
void wish_operands(const Region& region, const ContractionView& view, bool narrow, const TargetInfo& target,
                   LayoutWish& wish) {
  const Stage& stage = region.stages[0];
  const int64_t lanes = view.types.lanes(target);
  const int64_t channels = channels_of(stage, view);
  const int64_t depth = channel_depth(stage, view);
  if (!channels || !depth) return;
  const TileProblem problem = tile_problem(region, view);
  const bool words = view.types.sum == DType::i32 && !has_byte_products(target);
  const RegisterTile tile = words ? tile_of_words(problem, target) : choose_tile(problem, stage, view, target);
  const bool joined = in_blocks(region, view) && joins_taps(region, view, target);
  const int64_t block = joined ? kJoinedChannels : block_of_codes(region, view, narrow, target);
  const bool matrices = has_matrix_products(view.types, target) &&
                        problem.pixels * problem.rows >= kFewestMatrixPixels &&
                        (!in_blocks(region, view) || joined || fill_matrices(view.types, block));
  const int64_t vectors = matrices ? std::min(kMatrixVectors, ceil_of(channels, lanes)) : tile.vectors / view.sums();
  const int64_t columns = std::max<int64_t>(1, vectors_in_group(vectors, view, lanes)) * lanes;
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const Read& weights = stage.reads[static_cast<size_t>(view.weights)];
  if (weights.stage >= 0) return;
  if (view.types.unit() > 1) return wish_codes(region, view, columns, block, joined, wish);
  const auto& params = region.params;
  const size_t data_rank = params[static_cast<size_t>(data.index)].type.shape.rank();
  const bool image = data_rank > 2;
  const auto all =
      params[static_cast<size_t>(data.index)].type.shape[static_cast<size_t>(view.data_channel_dim)].constant();
  const bool whole = !view.group_out || view.group_out % columns == 0;
  const bool blocked = image && whole && depth >= lanes && divides_group(stage, view, lanes);
  const bool features = data_rank == 3 && view.data_channel_dim == 2;
  if ((blocked && (!features || share_a_set(depth * view.types.data_bytes()))) ||
      (image && view.group_out && all.value_or(0) >= lanes))
    wish.params[static_cast<size_t>(data.index)] = Layout::channels_blocked(data_rank, view.data_channel_dim, lanes);
  if (blocked && !features && maps_collide(params[static_cast<size_t>(data.index)].type.shape, view, depth, target)) {
    wish.reads.resize(params.size(), 1);
    wish.reads[static_cast<size_t>(data.index)] = ceil_of(channels, columns);
  }
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

bool constant_weights(const Region& region, const ContractionView& view) {
  const Read& weights = region.stages[0].reads[static_cast<size_t>(view.weights)];
  return weights.stage < 0 && region.params[static_cast<size_t>(weights.index)].role == ParamRole::constant;
}

/// Products of two activations (attention) read rows of both: no blocks along rows.
void drop_last_axis(LayoutWish& wish) {
  for (auto& layout : wish.params)
    if (layout && layout->blocks.size() == 1 && layout->blocks[0].axis > 1) layout.reset();
}

}  // namespace

void wish_contraction(const Region& region, const TargetInfo& target, LayoutWish& wish) {
  const auto view = std::get<ContractionView>(view_products(region, 0));
  const auto wished = [&](bool narrow, LayoutWish from) {
    if (view.coded)
      wish_decoded(region, view, target, from);
    else
      wish_operands(region, view, narrow, target, from);
    wish_like_output(region, region.stages[0], view.vec, target, from);
    if (!constant_weights(region, view)) drop_last_axis(from);
    return from;
  };
  LayoutWish narrow = wished(true, wish);
  wish = wished(false, std::move(wish));
  if (wish.params != narrow.params) wish.narrow = std::move(narrow.params);
}

}  // namespace opfuse
