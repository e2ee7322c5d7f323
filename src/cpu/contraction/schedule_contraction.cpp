// Schedules of register-tiled contractions. What the layouts of weights and data allow comes first (fit_operands), then
// the register tile, then how blocks of weights and rows pass through the caches (chunks of rows, passes over
// channels), and parts. Numbers: cpu/contraction/contraction_schedule.hpp.
#include <fmt/format.h>

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/matrix.hpp"
#include "cpu/contraction/overlap.hpp"
#include "cpu/contraction/packed_weights.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/schedules.hpp"

namespace opfuse {
namespace {

bool stored_contiguous(const ParamLayout& l, int dim) {
  return !l.layout.blocks.empty() && l.layout.blocks.back().axis == dim && l.strides.back() == Dim(1);
}

int64_t bytes_of(const Region& region, const Stage& stage, int read) {
  const Read& r = stage.reads[static_cast<size_t>(read)];
  if (r.stage >= 0)
    return static_cast<int64_t>(
        byte_size(region.stages[static_cast<size_t>(r.stage)].outputs[static_cast<size_t>(r.index)].dtype));
  auto bytes = static_cast<int64_t>(byte_size(region.params[static_cast<size_t>(r.index)].type.dtype));
  for (const Dim& d : region.params[static_cast<size_t>(r.index)].type.shape.dims) bytes *= d.constant().value_or(1);
  return bytes;
}

constexpr double kPassShareOfL2 = 0.4;  // measured: 0.8 leaves too little for what else passes through
constexpr double kChunkPixels = 64;     // from here on a chunk's weights come slowly enough to be fetched ahead from L3
constexpr int64_t kShortestPass = 128;  // products: below, resting accumulators cost more than the weights' way
constexpr int64_t kTilesOfOpenRows = 8;  // tiles among which the fetching of weights is shared: about 100 rows

/// Elements of the result, unknown extents as 1.
double outputs_of(const Stage& stage) {
  double count = 1;
  for (const Dim& d : stage.domain) count *= static_cast<double>(d.constant().value_or(1));
  return count;
}

/// Channels of the groups in one vector of outputs lie in whole vectors or in an aligned part of one.
bool permutable(int64_t group_out, int64_t depth, int64_t lanes, int64_t data_block) {
  if (lanes % group_out != 0 || depth > 16 || data_block != lanes) return false;
  const int64_t span = lanes / group_out * depth;
  return lanes % span == 0 || (span % lanes == 0 && span / lanes <= 4);
}

}  // namespace

int64_t stackable_rows(const Region& region, const ContractionView& view) {
  const Stage& stage = region.stages[0];
  const int row = row_axis_of(view);
  const bool known = view.pixel < 0 || axis_extent(stage, view.pixel).is_constant();
  if (row < 0 || region.stages.size() != 1 || !known || !axis_extent(stage, row).is_constant()) return 1;
  for (const SlidingDim& d : view.sliding)  // padding without taps is decided row by row
    if (d.axis == row && view.guarded && (d.tap < 0 || !d.extent.is_constant())) return 1;
  return axis_extent(stage, row).value();
}

bool divides_group(const Stage& stage, const ContractionView& view, int64_t block) {
  return !view.group_out || channel_depth(stage, view) % block == 0;
}

namespace {

/// What the layouts of a contraction's operands allow.
struct OperandFit {
  int64_t vectors = 1;  ///< of output channels that one block of weights holds
  int64_t grouped = 0;  ///< 1: lanes of several groups, permuted; 2: blended, or channels that straddle blocks
  int64_t step = 1;     ///< input channels per pass over the taps
  bool matrix = false;  ///< products of matrices
};

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

std::optional<OperandFit> fit_operands(const Stage& stage, const ContractionView& view,
                                       const std::vector<ParamLayout>& layouts, int64_t lanes) {
  const auto layout_of = [&](int read) -> const ParamLayout& {
    return layouts[static_cast<size_t>(stage.reads[static_cast<size_t>(read)].index)];
  };
  const ParamLayout& w = layout_of(view.weights);
  if (!std::all_of(view.gates.begin(), view.gates.end(), [&](int gate) { return layout_of(gate) == w; }))
    return std::nullopt;
  const ParamLayout& d = layouts[static_cast<size_t>(stage.reads[static_cast<size_t>(view.data)].index)];
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
    fit.grouped = !whole_groups && permutable(view.group_out, depth, lanes, data_block) ? 1 : 2;
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

/// What a part streams through L2, in bytes.
struct Streams {
  double block = 0;    ///< one block of weights
  double part = 0;     ///< all blocks of a part
  double row = 0;      ///< the data of one row or tile
  double resting = 0;  ///< accumulators of one row or tile over all blocks of a part
  int64_t rows = 1;    ///< of a part
  double pixels = 1;   ///< of one row or tile
  int64_t slices = 1;  ///< the most passes that channels can be cut into

  int64_t rows_of(int64_t chunks) const { return ceil_of(rows, chunks); }
};

/// Rows over which the blocks of weights pass, and passes over channels in which they do.
struct Chunking {
  int64_t rows = 1, passes = 1;
};

bool counts_images(const ContractionView& view, int axis) {
  return axis != row_axis_of(view) && std::find(view.outer.begin(), view.outer.end(), axis) != view.outer.end();
}

bool open_images(const Stage& stage, const ContractionView& view) {
  return std::any_of(view.outer.begin(), view.outer.end(),
                     [&](int axis) { return counts_images(view, axis) && !axis_extent(stage, axis).is_constant(); });
}

/// Accumulators rest in scratch between passes, so the map of an image must have known extents.
int64_t most_passes(const Region& region, const ContractionView& view, const ContractionSchedule& s) {
  const Stage& stage = region.stages[0];
  const int64_t depth = channel_depth(stage, view), step = s.step;
  if (s.matrix || view.group_out || view.channel < 0 || depth % step || region.stages.size() > 1) return 1;
  if (row_axis_of(view) < 0 && view.guarded) return 1;
  for (size_t axis = 0; axis < stage.domain.size(); ++axis)
    if (!stage.domain[axis].is_constant() && !counts_images(view, static_cast<int>(axis))) return 1;
  int64_t taps = 1;
  for (int tap : view.taps) taps *= axis_extent(stage, tap).value();
  return depth / std::min(depth, std::max(step, kShortestPass / taps));
}

/// The fewest passes with which two passes of weights (this one and the next, fetched meanwhile), the data of a pass
/// and the resting accumulators share L2; none: 0.
int64_t passes_that_fit(const Streams& w, int64_t rows, double room) {
  const auto r = static_cast<double>(rows);
  if (r * w.resting > room / 2) return 0;
  for (int64_t passes = 2; passes <= w.slices; ++passes)
    if ((2 * w.block + r * w.row) / static_cast<double>(passes) + r * w.resting <= room) return passes;
  return 0;
}

/// Chunks of equal length that stay in L2 beside two blocks of weights and are long enough.
bool even_chunks_do(const Streams& w, int64_t chunks, double room) {
  const auto rows = static_cast<double>(w.rows_of(chunks));
  return 2 * w.block + rows * w.row <= room && rows * w.pixels >= kChunkPixels;
}

/// All blocks of a part pass over as many rows as stay in L2 beside two of them. Where that means that weights come
/// from beyond L2 once per short chunk of rows, passes over channels let more rows stay.
Chunking chunk_for_cache(const Streams& w, const TargetInfo& target) {
  const auto l2 = static_cast<double>(target.l2_bytes);
  const double room = l2 * kWeightShareOfL2;
  Chunking whole;
  whole.rows = std::clamp<int64_t>(static_cast<int64_t>(std::max(room - 2 * w.block, l2 / 8) / w.row), 1, w.rows);
  const int64_t chunks = ceil_of(w.rows, whole.rows);
  const bool stay = w.part + static_cast<double>(whole.rows) * w.row <= room;
  const bool fits = two_blocks_fit(static_cast<int64_t>(w.block), target);
  if (fits && w.part <= w.block) return {w.rows, 1};  // one block for all rows: they fetch the next part's together
  if (fits && (chunks == 1 || stay)) return whole;
  if (fits && even_chunks_do(w, chunks, room)) return {w.rows_of(chunks), 1};
  for (int64_t c = 1; c < chunks || (c == 1 && !fits); ++c)
    if (const int64_t passes = passes_that_fit(w, w.rows_of(c), l2 * kPassShareOfL2); passes && w.rows_of(c) > 1)
      return {w.rows_of(c), passes};
  return whole;
}

void block_for_cache(ContractionSchedule& s, const Region& region, const ContractionView& view, const Streams& streams,
                     const TargetInfo& target) {
  const Chunking c = chunk_for_cache(streams, target);
  const int64_t step = s.step, steps = channel_depth(region.stages[0], view) / step;
  s.chunk = c.rows;
  if (c.passes > 1) s.k_block = ceil_of(steps, c.passes) * step;
  const int64_t lines = step * s.nv * view.types.lanes(target) * view.types.weight_bytes() / target.line_bytes;
  const bool open = view.pixel >= 0 && !axis_extent(region.stages[0], view.pixel).is_constant();
  const int64_t sharing = open ? kTilesOfOpenRows : c.rows;
  if (sharing > 1 && (c.passes > 1 || two_blocks_fit(static_cast<int64_t>(streams.block), target)))
    s.prefetch = ceil_of(lines, sharing);
}

/// Activations that do not stay in L2 beside the weights, or whose blocks lie apart, are fetched ahead: those of the
/// next channel block (a tile without taps reads each line once), results, and what the epilogue reads.
void fetch_ahead(ContractionSchedule& s, const Region& region, const std::vector<ParamLayout>& layouts,
                 const ContractionView& view, double data_bytes, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  const auto far = static_cast<double>(target.l2_bytes) / 2;
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const bool blocked = s.step == view.types.lanes(target) && channel_depth(stage, view) > s.step;
  if (region.stages.size() > 1 || s.grouped || view.pixel < 0 || data.stage >= 0) return;
  // a tile's lines of one block lie together and the next block's elsewhere, where no hardware prefetcher looks
  const bool jumps = layouts[static_cast<size_t>(data.index)].layout.block_of(view.data_channel_dim) > 1;
  if (view.taps.empty() && view.channel >= 0 && blocked && (jumps || data_bytes > far)) s.fetch_data = 1;
  const double out_bytes = static_cast<double>(view.types.result_bytes()) * outputs_of(stage);
  if (out_bytes > far && !s.k_block) s.fetch_outputs = 1;
}

/// Rows or tiles that parts cut.
int64_t item_count(const Stage& stage, const ContractionView& view, int64_t width, int64_t height) {
  if (const int row = row_axis_of(view); row >= 0)
    return ceil_of(axis_extent(stage, row).constant().value_or(1), height);
  const bool known = view.pixel < 0 || axis_extent(stage, view.pixel).is_constant();
  return known ? ceil_of(pixel_count(stage, view.pixel), width) : 1;
}

bool is_indexed_by(const Read& read, int axis) {
  for (const IndexExpr& e : read.map.dims)
    for (const auto& term : e.terms)
      if (term.axis == axis) return true;
  return false;
}

/// Bytes of what one image reads of an operand.
double image_bytes_of(const Region& region, const Stage& stage, const ContractionView& view, int read) {
  auto bytes = static_cast<double>(bytes_of(region, stage, read));
  for (int axis : view.outer)
    if (axis != row_axis_of(view) && is_indexed_by(stage.reads[static_cast<size_t>(read)], axis))
      bytes /= static_cast<double>(axis_extent(stage, axis).constant().value_or(1));
  return bytes;
}

/// A part takes all images where its weights stay in L2 from one to the next while all weights do not, unless that
/// moves more data than weights.
bool keeps_weights(const Streams& w, double weight_bytes, double image_bytes, int64_t parts_o,
                   const TargetInfo& target) {
  const double room = static_cast<double>(target.l2_bytes) * kWeightShareOfL2;
  return weight_bytes > room && w.part + w.row <= room && image_bytes * static_cast<double>(parts_o) < weight_bytes;
}

void cut_parts(ContractionSchedule& s, const Region& region, const std::vector<ParamLayout>& layouts,
               const ContractionView& view, int64_t items, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  const int64_t block = s.nv * view.types.lanes(target);
  const int64_t blocks = ceil_of(axis_extent(stage, view.vec).value(), block);
  const auto sums = static_cast<double>(view.sums());
  const double weight_bytes = sums * image_bytes_of(region, stage, view, view.weights);
  const bool shared = weight_bytes == sums * static_cast<double>(bytes_of(region, stage, view.weights));
  const int64_t images = images_of(stage, view);
  const auto data_bytes = static_cast<double>(bytes_of(region, stage, view.data));
  const double image_bytes = image_bytes_of(region, stage, view, view.data);
  const double work = sums * static_cast<double>(work_of(stage)) / static_cast<double>(view.types.unit());
  const double image_work = work / static_cast<double>(images);  // every image is cut like the only one
  split_parts(s, wanted_parts(image_work, target, weight_bytes), blocks, items, weight_bytes, image_bytes);
  Streams streams;
  streams.rows = ceil_of(items, s.parts_p);
  streams.block = weight_bytes / static_cast<double>(blocks);
  streams.part = streams.block * static_cast<double>(ceil_of(blocks, s.parts_o));
  streams.row = image_bytes / static_cast<double>(items);
  streams.resting = static_cast<double>(view.types.sum_bytes()) * sums * outputs_of(stage) /
                    static_cast<double>(images * items * s.parts_o);
  const double outputs = static_cast<double>(axis_extent(stage, view.vec).value());
  streams.pixels = outputs_of(stage) / (outputs * static_cast<double>(images * items));
  streams.slices = most_passes(region, view, s);
  block_for_cache(s, region, view, streams, target);
  if (weight_bytes <= kPassShareOfL2 * static_cast<double>(target.l2_bytes)) rows_first(s);
  fetch_ahead(s, region, layouts, view, data_bytes, target);
  const int64_t wanted = wanted_parts(work * 4, target), parts = s.parts_o * s.parts_p;
  if (parts == 1 && images > wanted)
    s.parts_batch = wanted;
  else if (shared && parts > 1 && (images > 1 || open_images(stage, view)) &&
           keeps_weights(streams, weight_bytes, image_bytes, s.parts_o, target))
    s.parts_batch = 1;
}

/// As fit_operands; weights that no layout makes fit may be packed by the kernel.
std::optional<OperandFit> fit_packed(const Region& region, const ContractionView& view,
                                     std::vector<ParamLayout> layouts, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  if (view.types.unit() > 1) {
    const auto vectors = fit_codes(region, view, layouts, target);
    if (!vectors || !outputs_fit(stage, layouts, view.vec, view.types.lanes(target))) return std::nullopt;
    const Read& data = stage.reads[static_cast<size_t>(view.data)];
    const int64_t step =
        *vectors <= kMatrixVectors ? matrix_step(stage, view, layouts[static_cast<size_t>(data.index)], target) : 0;
    return OperandFit{*vectors, 0, step ? step : view.types.lanes(target), step > 0};
  }
  if (!packs_weights(region, view)) return fit_operands(stage, view, layouts, view.types.lanes(target));
  const int64_t block = packed_vectors(stage, view, stackable_rows(region, view), target) * view.types.lanes(target);
  const auto weights = static_cast<size_t>(stage.reads[static_cast<size_t>(view.weights)].index);
  layouts[weights] = packed_weights(region, view, block);
  return fit_operands(stage, view, layouts, view.types.lanes(target));
}

/// Every part packs the blocks it uses, so rows are cut only where many remain for each.
void cut_packed(ContractionSchedule& s, const Stage& stage, const ContractionView& view, int64_t items,
                const TargetInfo& target) {
  const int64_t block = s.nv * view.types.lanes(target), images = images_of(stage, view);
  const int64_t blocks = ceil_of(axis_extent(stage, view.vec).value(), block);
  const int64_t rows = items * s.tile_w * s.tile_h;
  const auto work = static_cast<double>(work_of(stage));
  const int64_t wanted = wanted_parts(work, target);
  if (images >= wanted) {
    s.parts_batch = std::min(images, ceil_of(wanted, 2) * 2);
    return;
  }
  split_parts(s, ceil_of(wanted, images), blocks, std::clamp<int64_t>(rows / kPackedRows, 1, items), 1, 1);
}

TileProblem problem_of_row(const ContractionView& view, int64_t channels, int64_t pixels) {
  TileProblem problem;
  problem.types = view.types;
  problem.channels = channels;
  problem.pixels = pixels;
  return problem;
}

/// Two pixels may share the last of the last block's vectors. Padding is stored up to the end of that vector only.
bool shares_last_vector(const Stage& stage, const ContractionView& view, const std::vector<ParamLayout>& layouts,
                        int64_t vectors, const TargetInfo& target) {
  const int64_t channels = axis_extent(stage, view.vec).value(), lanes = view.types.lanes(target);
  for (const StageOutput& o : stage.outputs)
    if (o.param >= 0)
      for (const Block& b : layouts[static_cast<size_t>(o.param)].layout.blocks)
        if (b.factor > lanes) return false;
  const bool alone = ceil_of(channels, lanes) % vectors == 1;  // loads take as long as the products of a vector
  return vectors > 1 && !alone && !view.group_out && view.sums() == 1 && view.types.unit() == 1 &&
         ends_in_half(channels, lanes, target);
}

/// A register tile, and whether it leaves registers to the epilogue of the one before.
struct TileOption {
  int64_t width = 1;
  bool overlapped = false;
};

/// What the schedules of a contraction have in common.
struct Problem {
  const Region& region;
  const std::vector<ParamLayout>& layouts;
  const Stage& stage;
  const ContractionView& view;
  const TargetInfo& target;
  OperandFit fit;
  int64_t vectors = 1;  ///< of a register tile's weights
  int64_t kept = 0;     ///< registers that the products need besides
  int64_t pixels = 1;
  bool shares_last = false;  ///< two pixels may share the last vector, unless tiles overlap

  int64_t channels() const { return axis_extent(stage, view.vec).value(); }
  bool one_block() const { return channels() <= vectors * view.types.lanes(target); }
};

/// Why the stage is none of these, or its layouts are not for them: nothing.
std::optional<Problem> problem_of(const Region& region, const std::vector<ParamLayout>& layouts, int index,
                                  const ContractionView& view, const TargetInfo& target) {
  const Stage& stage = region.stages[static_cast<size_t>(index)];
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const Read& weights = stage.reads[static_cast<size_t>(view.weights)];
  if (!axis_extent(stage, view.vec).constant() || !channel_depth(stage, view)) return std::nullopt;
  if (data.stage >= 0 || weights.stage >= 0) return std::nullopt;
  for (int tap : view.taps)
    if (!axis_extent(stage, tap).is_constant()) return std::nullopt;
  const auto fit = fit_packed(region, view, layouts, target);
  const int64_t vectors = fit ? fit->vectors * view.sums() : 0;
  const int64_t kept = registers_of_products(view.types, vectors, target);
  if (!fit || !fits({vectors, 1}, target, kept)) return std::nullopt;
  const bool shares = shares_last_vector(stage, view, layouts, vectors, target);
  return Problem{region, layouts, stage, view, target, *fit, vectors, kept, pixel_count(stage, view.pixel), shares};
}

/// Tiles that overlap come first where they are faster than all that do not.
std::vector<Ranked<TileOption>> tiles_by_time(const Problem& p, size_t most) {
  Fastest<TileOption> fastest(most);
  if (p.fit.matrix) {
    fastest.offer(0, {matrix_width(p.pixels), false});
    return fastest.all();
  }
  // lanes of several groups need registers for the channels they are put together from
  const int64_t kept = p.fit.grouped ? 4 * p.vectors : p.kept, depth = channel_depth(p.stage, p.view);
  const TileProblem map = problem_of_row(p.view, p.channels(), p.pixels);
  const auto overlapped = may_overlap(p.stage, p.view, p.target) && !packs_weights(p.region, p.view)
                              ? overlapped_tile(map, depth, p.vectors, p.target)
                              : std::nullopt;
  if (overlapped) fastest.offer(overlapped_cycles(map, depth, *overlapped, p.target), {overlapped->width, true});
  for (const auto& [cycles, width] :
       widths_by_time(p.pixels, p.vectors, p.target, kept, !overlapped && p.shares_last && p.one_block(), most)) {
    const double steps = static_cast<double>(depth);
    fastest.offer(overlapped ? steps * tile_cycles(map, {p.vectors, width}, p.target) : steps * cycles, {width, false});
  }
  return fastest.all();
}

ContractionSchedule schedule_with(const TileOption& tile, const Problem& p) {
  ContractionSchedule s;
  const bool half = !tile.overlapped && p.shares_last;
  s.nv = p.fit.vectors;
  s.tile_w = tile.width;
  if (p.fit.grouped) s.grouped = p.fit.grouped;
  s.step = p.fit.step;
  if (p.fit.matrix) s.matrix = 1;
  // a row that is one narrow tile: several rows share each load of weights
  int64_t height = 1;
  if (tile.width == p.pixels && !tile.overlapped) {
    const int64_t rows = stackable_rows(p.region, p.view);
    height = p.fit.matrix ? std::clamp<int64_t>(kMatrixPixels / tile.width, 1, rows)
                          : tallest(rows, {p.vectors, tile.width, half && p.one_block()}, p.target, p.kept);
  }
  if (height > 1) s.tile_h = height;
  if (half && tile.width * height > 1) s.half = 1;
  const int64_t items = item_count(p.stage, p.view, tile.width, height);
  if (!packs_weights(p.region, p.view)) {
    cut_parts(s, p.region, p.layouts, p.view, items, p.target);
  } else {
    s.pack = 1;
    cut_packed(s, p.stage, p.view, items, p.target);
    if (p.view.factor >= 0) {
      rows_first(s);
      const auto data_bytes = static_cast<double>(bytes_of(p.region, p.stage, p.view.data));
      fetch_ahead(s, p.region, p.layouts, p.view, data_bytes, p.target);
    }
  }
  if (tile.overlapped && !s.k_block) s.overlap = 1;  // sums that rest between passes are not done
  return s;
}

}  // namespace

std::optional<std::string> misfit(const ContractionSchedule& s, const Region& region,
                                  const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  const auto found = view_products(region, 0);
  const auto* view = std::get_if<ContractionView>(&found);
  if (!view) return std::get<std::string>(found);
  const auto problem = problem_of(region, layouts, 0, *view, target);
  if (!problem) return "the layouts of the operands are not for register tiles";
  const OperandFit& fit = problem->fit;
  const auto wrong = [](const char* name, int64_t is, int64_t want) {
    return fmt::format("{}={}, and the layouts want {}", name, is, want);
  };
  if (s.nv != fit.vectors) return wrong("nv", s.nv, fit.vectors);
  if (s.step != fit.step) return wrong("step", s.step, fit.step);
  if (s.matrix != int64_t{fit.matrix}) return wrong("matrix", s.matrix, fit.matrix);
  if (s.matrix && s.tile_w * s.tile_h > kMatrixPixels) return wrong("tile_w", s.tile_w, kMatrixPixels / s.tile_h);
  if (s.matrix && s.k_block) return "k_block beside matrix=1: sums in matrix registers do not rest";
  if (s.grouped != fit.grouped) return wrong("grouped", s.grouped, fit.grouped);
  if (s.pack != int64_t{packs_weights(region, *view)}) return wrong("pack", s.pack, packs_weights(region, *view));
  if (s.half && !problem->shares_last) return "half=1 of channels that end in no half vector";
  if (s.overlap && s.k_block) return "overlap=1 beside k_block: sums that rest between passes are not done";
  if (s.overlap && !may_overlap(problem->stage, *view, target)) return "overlap=1 of an epilogue that cannot wait";
  if (s.k_block % s.step) return fmt::format("k_block={} is not a multiple of step={}", int64_t{s.k_block}, s.step);
  return std::nullopt;
}

std::vector<Ranked<ContractionSchedule>> schedule_contraction(const Region& region,
                                                              const std::vector<ParamLayout>& layouts, int index,
                                                              const TargetInfo& target, size_t most) {
  const auto found = view_products(region, index);
  const auto* view = std::get_if<ContractionView>(&found);
  const auto problem = view ? problem_of(region, layouts, index, *view, target) : std::nullopt;
  if (!problem) return {};
  std::vector<Ranked<ContractionSchedule>> schedules;
  for (const auto& [cycles, tile] : tiles_by_time(*problem, most))
    schedules.push_back({cycles, schedule_with(tile, *problem)});
  return schedules;
}

}  // namespace opfuse
