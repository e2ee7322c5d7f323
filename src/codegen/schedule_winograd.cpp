// The schedule of a Winograd convolution, when the layout of its weights says that it is one.
//
// A part transforms the data it needs in chunks of tiles whose transformed data, and the products of one block of
// output channels, stay in L2; the weights of its blocks stream past every chunk. Parts that cut output channels
// transform the data again, parts and chunks that cut tiles read the weights again: the cost model weighs the two.
#include <algorithm>
#include <cmath>

#include "base/integers.hpp"
#include "codegen/schedules.hpp"
#include "codegen/winograd.hpp"

namespace opfuse {
namespace {

/// A part of parts_o x parts_p that cuts its tiles into `chunks`.
WinogradChoice cost_part(const WinogradWork& work, int64_t parts_o, int64_t parts_p, int64_t chunks,
                         const TargetInfo& target) {
  WinogradChoice c{parts_o, parts_p};
  const int64_t tiles = ceil_of(work.tiles, parts_p), blocks = ceil_of(work.blocks, parts_o);
  c.chunk = ceil_of(tiles, chunks);
  c.width = winograd_width(c.chunk, work.vectors, target);
  const auto count = static_cast<double>(c.chunk), passes = static_cast<double>(chunks);
  const double product = static_cast<double>(work.points * ceil_of(c.chunk, c.width)) *
                         (static_cast<double>(work.channels) * winograd_step_cycles(c.width, work.vectors) + 40);
  const double block = product + count * static_cast<double>(work.vectors) * work.output_cycles;
  c.cycles = passes * (count * static_cast<double>(work.channel_vectors) * work.input_cycles +
                       static_cast<double>(blocks) * block);
  c.streamed = passes * static_cast<double>(blocks * work.block_bytes());
  const int64_t held = work.points * work.channel_vectors * c.chunk * target.vector_bytes;
  if (held > target.l2_bytes * 6 / 10) c.cycles *= 1.04;  // read from L3 now and then
  c.scratch_bytes = winograd_scratch(work.tile, work.channels, work.vectors * work.lanes, work.lanes, c.chunk).bytes;
  return c;
}

}  // namespace

/// Compute and the streams overlap but for a share of the shorter.
double winograd_cycles(const WinogradWork& work, const WinogradChoice& c, int64_t threads) {
  const int64_t parts = c.parts_o * c.parts_p, rounds = ceil_of(parts, threads);
  const double compute = static_cast<double>(rounds) * c.cycles;
  const double near = static_cast<double>(rounds) * c.streamed / kL3BytesPerCycle;
  const double far = static_cast<double>(work.blocks * work.block_bytes()) / kMemoryBytesPerCycle;
  const double memory = std::max(near, far);
  return std::max(compute, memory) + 0.1 * std::min(compute, memory);
}

WinogradChoice choose_winograd_parts(const WinogradWork& work, const TargetInfo& target) {
  WinogradChoice best;
  double least = INFINITY;
  for (int64_t o = 1; o <= std::min<int64_t>(work.blocks, 16); ++o)
    for (int64_t p = 1; p <= std::min<int64_t>(work.tiles, 64) && o * p <= 64; ++p) {
      const int64_t tiles = ceil_of(work.tiles, p);
      for (int64_t chunks = 1; chunks <= tiles; chunks += 1 + chunks / 8) {
        const WinogradChoice c = cost_part(work, o, p, chunks, target);
        const int64_t held = work.points * work.channel_vectors * c.chunk * target.vector_bytes;
        if (held > target.l2_bytes && c.chunk > 1) continue;
        double cycles = static_cast<double>(o * p) * 1000;
        cycles += winograd_cycles(work, c, 1) + 2 * winograd_cycles(work, c, 2) + winograd_cycles(work, c, 4);
        if (cycles < least) least = cycles, best = c;
        if (held < target.l2_bytes / 8) break;  // smaller chunks only read the weights more often
      }
    }
  return best;
}

namespace {

bool blocked_by_lanes(const ParamLayout& l, const IndexMap& map, int axis, int64_t lanes, int64_t block) {
  for (const Block& b : l.layout.blocks) {
    const auto& terms = map.dims[static_cast<size_t>(b.axis)].terms;
    if (terms.size() != 1 || terms[0].axis != axis || (b.factor != lanes && block % b.factor)) return false;
  }
  return true;
}

}  // namespace

bool schedule_winograd(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target,
                       Schedule& s) {
  const auto found = view_winograd(region, 0);
  const auto* view = std::get_if<WinogradView>(&found);
  if (!view) return false;
  const ContractionView& c = view->contraction;
  const Stage& stage = region.stages[0];
  const Layout& weights = layouts[static_cast<size_t>(stage.reads[static_cast<size_t>(c.weights)].index)].layout;
  const ParamLayout& data = layouts[static_cast<size_t>(stage.reads[static_cast<size_t>(c.data)].index)];
  if (!weights.is_transformed()) return false;
  const int64_t lanes = target.lanes_f32(), block = weights.block_of(0);
  if (data.layout.blocks != std::vector<Block>{{c.data_channel_dim, lanes}} || !(data.strides.back() == Dim(1)))
    return false;
  for (const StageOutput& o : stage.outputs)
    if (!blocked_by_lanes(layouts[static_cast<size_t>(o.param)], o.map, c.vec, lanes, block)) return false;
  const WinogradTile tile{weights.tile_h, weights.tile_w};
  const WinogradWork work = winograd_work(stage, *view, tile, block / lanes, target);
  const WinogradChoice choice = choose_winograd_parts(work, target);
  s.set("winograd_h", tile.h);
  s.set("winograd_w", tile.w);
  s.set("nv", work.vectors);
  s.set("tile_w", choice.width);
  s.set("chunk", choice.chunk);
  s.set("parts_o", choice.parts_o);
  s.set("parts_p", choice.parts_p);
  // each register tile of a block fetches its share of the weights of the next
  const int64_t passes = ceil_of(choice.chunk, choice.width);
  s.set("prefetch", ceil_of(4 * block * 4 / 64, passes));
  return true;
}

}  // namespace opfuse
