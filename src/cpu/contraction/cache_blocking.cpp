// Chunks of rows stay in L2 while the blocks of weights pass over them. Where weights would come from beyond L2 once
// per short chunk, passes over channels let more rows stay.
#include "cpu/contraction/cache_blocking.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/schedule_parts.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

int64_t bytes_of(const Region& region, const Stage& stage, int read) {
  const Read& r = stage.reads[static_cast<size_t>(read)];
  if (r.stage >= 0)
    return static_cast<int64_t>(
        byte_size(region.stages[static_cast<size_t>(r.stage)].outputs[static_cast<size_t>(r.index)].dtype));
  auto bytes = static_cast<int64_t>(byte_size(region.params[static_cast<size_t>(r.index)].type.dtype));
  for (const Dim& d : region.params[static_cast<size_t>(r.index)].type.shape.dims) bytes *= d.constant().value_or(1);
  return bytes;
}

/// Not in L2 beside the weights.
bool lies_beyond_l2(const Region& region, const Stage& stage, int read, const TargetInfo& target) {
  return static_cast<double>(bytes_of(region, stage, read)) > static_cast<double>(target.l2_bytes) / 2;
}

constexpr double kChunkPixels = 64;     // from here on a chunk's weights come slowly enough to be fetched ahead from L3
constexpr int64_t kShortestPass = 128;  // products: below, resting accumulators cost more than the weights' way
constexpr int64_t kTilesOfOpenRows = 8;  // tiles among which the fetching of weights is shared: about 100 rows

/// Elements of the result, unknown extents as 1.
double outputs_of(const Stage& stage) {
  double count = 1;
  for (const Dim& d : stage.domain) count *= static_cast<double>(d.constant().value_or(1));
  return count;
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
  if (s.matrix || view.group_out || view.channel < 0 || depth == 0 || depth % step || !is_single_stage(region))
    return 1;
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
  const double room = l2 * target.shares.weights;
  Chunking whole;
  const double rows = std::max(room - 2 * w.block, l2 / 8) / std::max(w.row, 1.0);  // rows of no channels take nothing
  whole.rows = std::clamp<int64_t>(static_cast<int64_t>(rows), 1, w.rows);
  const int64_t chunks = ceil_of(w.rows, whole.rows);
  const bool stay = w.part + static_cast<double>(whole.rows) * w.row <= room;
  const bool fits = two_blocks_fit(static_cast<int64_t>(w.block), target);
  if (fits && w.part <= w.block) return {w.rows, 1};  // one block for all rows: they fetch the next part's together
  if (fits && (chunks == 1 || stay)) return whole;
  if (fits && even_chunks_do(w, chunks, room)) return {w.rows_of(chunks), 1};
  for (int64_t c = 1; c < chunks || (c == 1 && !fits); ++c)
    if (const int64_t passes = passes_that_fit(w, w.rows_of(c), l2 * target.shares.pass); passes && w.rows_of(c) > 1)
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
  const double room = static_cast<double>(target.l2_bytes) * target.shares.weights;
  return weight_bytes > room && w.part + w.row <= room && image_bytes * static_cast<double>(parts_o) < weight_bytes;
}

}  // namespace

/// Activations that do not stay in L2 beside the weights, or whose blocks lie apart, are fetched ahead: those of the
/// next channel block (a tile without taps reads each line once).
bool fetches_data(const ContractionSchedule& s, const Region& region, const std::vector<ParamLayout>& layouts,
                  const ContractionView& view, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  const bool blocked = s.step == view.types.lanes(target) && channel_depth(stage, view) > s.step;
  if (s.grouped || view.pixel < 0 || data.stage >= 0 || !view.taps.empty() || view.channel < 0 || !blocked)
    return false;
  // a tile's lines of one block lie together and the next block's elsewhere, where no hardware prefetcher looks
  const bool jumps = layouts[static_cast<size_t>(data.index)].layout.block_of(view.data_channel_dim) > 1;
  return jumps || lies_beyond_l2(region, stage, view.data, target);
}

/// The first of few passes of blocks over a chunk finds its data beyond L2, and what was written some milliseconds ago
/// beyond L3 too: a step takes no time beside that, a tile does. (192 -> 48 channels at 56 x 56 on Zen 3: 1.09 -> 0.84
/// ms; more passes or shorter chunks only pay for the instructions.)
bool fetches_next_tile(const ContractionSchedule& s, const Region& region, const ContractionView& view,
                       const TargetInfo& target) {
  constexpr int64_t kFewPasses = 8, kLongChunk = 6;
  const Stage& stage = region.stages[0];
  const int64_t block = s.nv * view.types.lanes(target) * s.parts_o;
  return lies_beyond_l2(region, stage, view.data, target) && !s.k_block &&
         ceil_of(axis_extent(stage, view.vec).value(), block) <= kFewPasses && s.chunk >= kLongChunk;
}

/// Also results, and what the epilogue reads.
void fetch_ahead(ContractionSchedule& s, const Region& region, const std::vector<ParamLayout>& layouts,
                 const ContractionView& view, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  const auto far = static_cast<double>(target.l2_bytes) / 2;
  const Read& data = stage.reads[static_cast<size_t>(view.data)];
  if (!is_single_stage(region) || s.grouped || view.pixel < 0 || data.stage >= 0) return;
  if (fetches_data(s, region, layouts, view, target)) s.fetch_data = fetches_next_tile(s, region, view, target) ? 2 : 1;
  const double out_bytes = static_cast<double>(view.types.result_bytes()) * outputs_of(stage);
  if (out_bytes > far && !s.k_block) s.fetch_outputs = 1;
}

/// Matrices multiply several times as fast as vectors, and each part sets registers, copies data and ends alone: no
/// more parts than a few threads need.
void cut_parts(ContractionSchedule& s, const Region& region, const std::vector<ParamLayout>& layouts,
               const ContractionView& view, int64_t items, const TargetInfo& target) {
  const Stage& stage = region.stages[0];
  const int64_t block = s.nv * view.types.lanes(target);
  const int64_t blocks = ceil_of(axis_extent(stage, view.vec).value(), block);
  const auto sums = static_cast<double>(view.sums());
  const double weight_bytes = sums * image_bytes_of(region, stage, view, view.weights);
  const bool shared = weight_bytes == sums * static_cast<double>(bytes_of(region, stage, view.weights));
  const int64_t images = images_of(stage, view);
  const double image_bytes = image_bytes_of(region, stage, view, view.data);
  const double work = sums * static_cast<double>(work_of(stage)) / static_cast<double>(view.types.unit());
  const double image_work = work / static_cast<double>(images);  // every image is cut like the only one
  int64_t pieces = wanted_parts(image_work, target, weight_bytes);
  if (s.matrix && target.launch.threads <= kFewThreads) pieces = std::min(pieces, kFewThreads);
  split_parts(s, pieces, blocks, items, weight_bytes, image_bytes, target);
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
  if (weight_bytes <= target.shares.pass * static_cast<double>(target.l2_bytes)) rows_first(s);
  fetch_ahead(s, region, layouts, view, target);
  const int64_t wanted = wanted_parts(work * 4, target), parts = s.parts_o * s.parts_p;
  if (parts == 1 && images > wanted)
    s.parts_batch = wanted;
  else if (shared && parts > 1 && (images > 1 || open_images(stage, view)) &&
           keeps_weights(streams, weight_bytes, image_bytes, s.parts_o, target))
    s.parts_batch = 1;
}

}  // namespace opfuse
