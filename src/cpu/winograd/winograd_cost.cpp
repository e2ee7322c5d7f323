#include "cpu/winograd/winograd_cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/integers.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/memory_rates.hpp"
#include "tensor/winograd.hpp"

namespace opfuse {
namespace {

constexpr int64_t kMostTilesToBlock = 64;  // as many as choose the number of vectors per block

int64_t tile_count(const Stage& stage, const WinogradView& view, const WinogradTile& tile) {
  int64_t tiles = ceil_of(axis_extent(stage, view.row.axis).value(), tile.h) *
                  ceil_of(axis_extent(stage, view.column.axis).value(), tile.w);
  for (int axis : view.batch) tiles *= axis_extent(stage, axis).constant().value_or(1);
  return tiles;
}

/// Of one tile and vector: multiply-adds of both passes, and stores, one per cycle. Sums of codes are divided, their
/// data are widened.
double transform_cycles(const WinogradTile& t, bool input, bool codes, const TargetInfo& target) {
  const auto h = static_cast<double>(winograd::points(t.h)), w = static_cast<double>(winograd::points(t.w));
  const auto line = [](int64_t tile) { return tile == 4 ? 12.0 : 4.0; };
  const double rows = input ? h : static_cast<double>(t.w);
  const double stores = input ? h * w : static_cast<double>(t.h * t.w);
  const double more = codes ? (input ? h * w : 3 * stores) : 0;
  return (rows * line(t.w) + w * line(t.h) + more) / static_cast<double>(target.fma_units) + stores +
         target.kernels.winograd_transform;
}

double scaled(int64_t bytes, double share) { return static_cast<double>(bytes) * share; }

}  // namespace

/// As register_tile.hpp has it, but every vector of weights comes from L2 or beyond. Two codes are multiplied by one
/// operation and added by another.
double winograd_step_cycles(int64_t width, int64_t vectors, bool codes, const TargetInfo& target) {
  const auto w = static_cast<double>(width), v = static_cast<double>(vectors);
  const auto units = static_cast<double>(target.fma_units), loads = static_cast<double>(target.load_units);
  const double arithmetic = w * v / units * (target.fma && !codes ? 1 : 2),
               latency = static_cast<double>(target.fma_latency);
  return std::max({arithmetic, (w + v) / loads, v * target.kernels.winograd_weights, latency}) +
         target.kernels.winograd_step;
}

int64_t winograd_width(int64_t tiles, int64_t vectors, bool codes, const TargetInfo& target) {
  int64_t best = 1;
  double least = INFINITY;
  for (int64_t w = 1; fits({vectors, w}, target, winograd_kept(codes)) && w <= tiles; ++w) {
    const double cycles = static_cast<double>(ceil_of(tiles, w)) * winograd_step_cycles(w, vectors, codes, target);
    if (cycles < least) least = cycles, best = w;
  }
  return best;
}

int64_t winograd_vectors(const Stage& stage, const WinogradView& view, const WinogradTile& tile,
                         const TargetInfo& target) {
  const ContractionView& c = view.contraction;
  const int64_t lanes = target.lanes_f32();
  const int64_t channels = c.group_out ? c.group_out : axis_extent(stage, c.vec).value();
  if (c.group_out && (channels % lanes || channel_depth(stage, c) % lanes)) return 0;
  const int64_t tiles = std::min(tile_count(stage, view, tile), kMostTilesToBlock), count = ceil_of(channels, lanes);
  int64_t best = 1;
  double least = INFINITY;
  const bool codes = view.codes();
  for (int64_t v = 1; v <= 4 && fits({v, 1}, target, winograd_kept(codes)); ++v) {
    if (c.group_out && count % v) continue;
    const int64_t width = winograd_width(tiles, v, codes, target);
    const double cycles =
        static_cast<double>(ceil_of(count, v) * ceil_of(tiles, width)) * winograd_step_cycles(width, v, codes, target);
    if (cycles < least * 0.999) least = cycles, best = v;
  }
  return best;
}

WinogradWork winograd_work(const Stage& stage, const WinogradView& view, const WinogradTile& tile, int64_t vectors,
                           const TargetInfo& target) {
  const ContractionView& c = view.contraction;
  const int64_t outputs = axis_extent(stage, c.vec).value();
  WinogradWork work;
  work.tile = tile;
  work.lanes = target.lanes_f32();
  work.points = winograd::points(tile.h) * winograd::points(tile.w);
  work.codes = view.codes();
  work.words = ceil_of(channel_depth(stage, c), winograd_unit(work.codes));
  work.channel_vectors = ceil_of(channel_depth(stage, c), work.lanes);
  work.groups = c.group_out ? outputs / c.group_out : 1;
  work.vectors = vectors;
  work.blocks = ceil_of(outputs, vectors * work.lanes);
  work.tiles = tile_count(stage, view, tile);
  work.input_cycles = transform_cycles(tile, true, work.codes, target);
  work.output_cycles = transform_cycles(tile, false, work.codes, target);
  return work;
}

WinogradChoice cost_winograd_part(const WinogradWork& work, int64_t parts_o, int64_t parts_p, int64_t chunk,
                                  const TargetInfo& target) {
  WinogradChoice c{parts_o, parts_p};
  const int64_t tiles = ceil_of(work.tiles, parts_p), blocks = ceil_of(work.blocks, parts_o);
  const int64_t groups = ceil_of(work.groups, parts_o);
  c.chunks = ceil_of(tiles, chunk);
  c.chunk = ceil_of(tiles, c.chunks);
  c.width = winograd_width(c.chunk, work.vectors, work.codes, target);
  c.part_bytes = blocks * work.block_bytes();
  c.held_bytes = work.points * work.channel_vectors * c.chunk * target.vector_bytes / winograd_unit(work.codes);
  c.scratch_bytes =
      winograd_scratch(work.tile, work.channel_vectors, work.codes, work.vectors * work.lanes, c.chunk, target).bytes;
  const auto all_tiles = static_cast<double>(tiles), passes = static_cast<double>(c.chunks);
  const double step = winograd_step_cycles(c.width, work.vectors, work.codes, target);
  const double product = static_cast<double>(work.points * ceil_of(c.chunk, c.width)) *
                         (static_cast<double>(work.words) * step + target.kernels.winograd_tile);
  const double input = all_tiles * static_cast<double>(groups * work.channel_vectors) * work.input_cycles;
  const double output = all_tiles * static_cast<double>(blocks * work.vectors) * work.output_cycles;
  c.cycles = input + passes * static_cast<double>(blocks) * product + output;
  if (static_cast<double>(c.held_bytes) > scaled(target.l2_bytes, target.shares.winograd_data))
    c.data_cycles = passes * static_cast<double>(blocks) * static_cast<double>(c.held_bytes) / target.rates.l3_data;
  return c;
}

/// A thread's parts follow each other with the channels slowest (cpu/emit/parts.hpp). The first time that weights
/// are read they come from memory; further chunks and parts find them in L2, in L3, or nowhere.
double winograd_cycles(const WinogradWork& work, const WinogradChoice& c, const TargetInfo& target, int64_t threads) {
  const int64_t rounds = ceil_of(c.parts_o * c.parts_p, threads);
  const auto readings = static_cast<double>(rounds * c.chunks);
  const auto part = static_cast<double>(c.part_bytes), all = static_cast<double>(work.weight_bytes());
  const double first =
      std::clamp(static_cast<double>(c.parts_o) / static_cast<double>(threads), 1.0, static_cast<double>(rounds));
  const double memory = memory_bytes_per_cycle(target, threads);
  double again = 0;
  const bool near = part + static_cast<double>(c.scratch_bytes) <= scaled(target.l2_bytes, target.shares.winograd_part);
  if (!near) {
    const bool in_l3 = all <= scaled(target.l3_bytes, target.shares.l3_weights);
    const double rate = in_l3 ? target.rates.l3_weights : memory / static_cast<double>(threads);
    again = (readings - first) * part / rate;
  }
  const double busy = static_cast<double>(rounds) * (c.cycles + c.data_cycles), share = first / readings;
  return overlapped(busy * share, all / memory, target) + overlapped(busy * (1 - share), again, target);
}

std::vector<Ranked<WinogradChoice>> winograd_choices(const WinogradWork& work, const TargetInfo& target,
                                                     int64_t threads, size_t most) {
  Fastest<WinogradChoice> fastest(most);
  for (int64_t o = 1; o <= std::min<int64_t>(work.blocks, 16); ++o)
    for (int64_t p = 1; p <= std::min<int64_t>(work.tiles, 64) && o * p <= 64; ++p) {
      const int64_t tiles = ceil_of(work.tiles, p);
      for (int64_t chunks = 1; chunks <= tiles; chunks += 1 + chunks / 8) {
        const WinogradChoice c = cost_winograd_part(work, o, p, ceil_of(tiles, chunks), target);
        if (static_cast<double>(c.held_bytes) > scaled(target.l3_bytes, target.shares.winograd_l3) && c.chunk > 1)
          continue;
        double cycles = static_cast<double>(o * p) * target.launch.part_cycles;
        for (const auto& [count, weight] : {std::pair{1, 1}, {2, 2}, {4, 1}})
          cycles += weight * winograd_cycles(work, c, target, count);
        if (threads > 4) {
          const auto idle = static_cast<double>(ceil_of(o * p, threads) * threads) / static_cast<double>(o * p);
          cycles += static_cast<double>(threads) * winograd_cycles(work, c, target, threads) *
                    (1 + target.kernels.winograd_idle * (idle - 1));
        }
        fastest.offer(cycles, c);
        if (c.held_bytes < target.l2_bytes / 8) break;  // smaller chunks only read the weights more often
      }
    }
  return fastest.all();
}

}  // namespace opfuse
