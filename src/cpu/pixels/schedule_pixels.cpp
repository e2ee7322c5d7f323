// When lanes should hold pixels instead of output channels, and the tile, bands and parts of that form.
//
// Channel lanes round the outputs (of every group) up to whole vectors; pixel lanes round rows up to their zeros and
// pay for packing the input and for turning the results. Both are estimated in cycles of one core; layouts play no
// part, so that the same question has the same answer when layouts are wished and when schedules are chosen.
#include <algorithm>
#include <cmath>

#include "base/integers.hpp"
#include "cpu/cache_sets.hpp"
#include "cpu/pixels/pixel_view.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/schedules.hpp"
#include "expr/real_ops.hpp"

namespace opfuse {
namespace {

constexpr int64_t kMostTaps = 121, kMostColumns = 15;

struct PixelTile {
  int64_t outputs = 1, vectors = 1;
};

/// Cycles of one step: arithmetic, loads (a vector at any address costs two), latency.
double step_cycles(int64_t outputs, int64_t vectors, const TargetInfo& target) {
  const auto o = static_cast<double>(outputs), v = static_cast<double>(vectors);
  const auto units = static_cast<double>(target.fma_units), loads = static_cast<double>(target.load_units);
  const auto latency = static_cast<double>(target.fma_latency);
  return std::max({o * v / units * (target.fma ? 1 : 2), (2 * v + o) / loads, latency}) + target.kernels.step;
}

double tiles_cycles(int64_t outputs, int64_t vectors, const PixelTile& tile, double more, const TargetInfo& target) {
  const auto row = [&](int64_t o) {
    const int64_t whole = vectors / tile.vectors;
    double cycles = static_cast<double>(whole) * (step_cycles(o, tile.vectors, target) + more);
    if (vectors % tile.vectors) cycles += step_cycles(o, vectors % tile.vectors, target) + more;
    return cycles;
  };
  const int64_t whole = outputs / tile.outputs;
  double cycles = static_cast<double>(whole) * row(tile.outputs);
  if (outputs % tile.outputs) cycles += row(outputs % tile.outputs);
  return cycles;
}

/// Weights as a tile reads them: `block` outputs are neighbours, 0: all lie at one stride. A tile stays inside a block
/// and uses a part of every line.
struct WeightLines {
  int64_t block = 0;
  int64_t lines = 0;  ///< of one tile
  double cycles(const TargetInfo& target) const {
    if (block == 0) return 0;
    return lines > target.kernels.pixel_lines ? target.kernels.pixel_weights : target.kernels.pixel_weights_near;
  }
};

PixelTile choose_pixel_tile(int64_t outputs, int64_t vectors, const WeightLines& weights, const TargetInfo& target,
                            double& least) {
  PixelTile best;
  least = INFINITY;
  for (int64_t o = 1; o <= std::min<int64_t>(outputs, 16); ++o)
    for (int64_t v = 1; v <= vectors && o * v + v + 1 <= target.vector_registers; ++v) {
      if (weights.block && weights.block % o != 0) continue;
      if (const double c = tiles_cycles(outputs, vectors, {o, v}, weights.cycles(target), target); c < least)
        least = c, best = {o, v};
    }
  return best;
}

struct PixelChoice {
  PixelTile tile;
  int64_t bands = 1;
  bool all_groups = true;
  double cycles = INFINITY;  ///< per image
};

/// Weights that exist: those of all taps in all phases.
int64_t weights_of(const PixelDim& d) { return d.taps * d.phases.count - d.phases.missing; }
int64_t steps_of(const PixelView& view) {
  return view.groups * view.depth * weights_of(view.planes) * weights_of(view.rows) * weights_of(view.columns);
}

double band_cycles(const PixelView& view, const PixelPacking& p, bool all_groups, const TargetInfo& target) {
  const double group_channels = static_cast<double>(p.packed_channels * p.plane_taps);
  const double channels = all_groups ? group_channels : group_channels * static_cast<double>(view.groups);
  const double packed = channels * static_cast<double>(p.channel);
  const double stored = static_cast<double>(p.stage_outputs * p.band_rows * view.columns.positions);
  return target.kernels.pixel_turned * (packed + stored);
}

double cycles_of(const PixelView& view, const TargetInfo& target, int64_t bands, int64_t block, PixelChoice& choice) {
  const PixelPacking p = pack_pixels(view, target.lanes_f32(), bands, choice.all_groups);
  double tiles = 0;
  const WeightLines weights{block, steps_of(view) / (view.groups * view.phases())};
  choice.tile = choose_pixel_tile(view.outputs, result_vectors(view, p, p.band_rows), weights, target, tiles);
  const double band = band_cycles(view, p, choice.all_groups, target) +
                      tiles * static_cast<double>(steps_of(view)) / target.kernels.reached;
  const double images = static_cast<double>(view.planes.positions * view.rows.positions);
  return band * images / static_cast<double>(p.band_rows);
}

/// Workers that share so many parts: the largest share over the mean.
double imbalance(int64_t parts, int64_t workers) {
  return static_cast<double>(ceil_of(parts, workers) * workers) / static_cast<double>(parts);
}

/// Of the time of one core, by `parts` bands that two workers share, or as many as there are.
double of_parts(int64_t parts, const TargetInfo& target) {
  const int64_t threads = target.launch.threads;
  return threads > kFewThreads ? imbalance(parts, threads) : 1 + target.parts.pixel_uneven * (imbalance(parts, 2) - 1);
}

/// Rows of the largest band to look at: what half of it needs fits `room`, so nothing larger than it does.
int64_t most_rows(const PixelView& view, const TargetInfo& target, bool all_groups, double room) {
  int64_t rows = view.rows.positions;
  const auto bytes = [&](int64_t of) {
    const int64_t bands = ceil_of(view.rows.positions, of);
    return static_cast<double>(pack_pixels(view, target.lanes_f32(), bands, all_groups).scratch_bytes());
  };
  while (rows > 1 && bytes(rows / 2) > room) rows /= 2;
  return rows;
}

/// By the number of bands, the least work first; none when not even a row fits the cache. `shared`: by several workers.
std::vector<Ranked<PixelChoice>> bands_by_time(const PixelView& view, const TargetInfo& target, int64_t batch,
                                               bool shared, size_t most, int64_t block = 0) {
  Fastest<PixelChoice> fastest(most);
  const double room = target.shares.pixels * static_cast<double>(target.l2_bytes);
  for (const bool all_groups : {true, false}) {
    if (!all_groups && view.groups == 1) break;
    for (int64_t rows = most_rows(view, target, all_groups, room), fitting = 0; rows > 0 && fitting < 40; --rows) {
      PixelChoice choice;
      choice.bands = ceil_of(view.rows.positions, rows);
      choice.all_groups = all_groups;
      if (ceil_of(view.rows.positions, choice.bands) != rows) continue;
      const PixelPacking p = pack_pixels(view, target.lanes_f32(), choice.bands, all_groups);
      if (static_cast<double>(p.scratch_bytes()) > room) continue;
      ++fitting;
      choice.cycles = cycles_of(view, target, choice.bands, block, choice);
      const double even = shared ? of_parts(choice.bands * batch, target) : 1;
      fastest.offer(choice.cycles * even, choice);
    }
  }
  return fastest.all();
}

/// Per image, of one core; infinite where not even a row fits the cache.
double least_band_cycles(const PixelView& view, const TargetInfo& target, int64_t batch = 1, int64_t block = 0) {
  const auto found = bands_by_time(view, target, batch, false, 1, block);
  return found.empty() ? INFINITY : found.front().choice.cycles;
}

/// Cycles per image of the form with channels in lanes.
double channel_lane_cycles(const PixelView& view, const TargetInfo& target) {
  const int64_t lanes = target.lanes_f32();
  const bool whole = view.groups == 1 || view.outputs % lanes == 0;
  const int64_t vectors = whole ? view.groups * ceil_of(view.outputs, lanes) : ceil_of(view.all_outputs(), lanes);
  const auto steps = static_cast<double>(vectors * steps_of(view) / view.groups);
  const double positions = static_cast<double>(view.planes.positions * view.rows.positions * view.columns.positions);
  const double cycles = steps * positions / (target.fma ? 2 : 1) / target.kernels.reached;
  const double inside = inside_share(view.rows, view.rows.taps, view.rows.positions) *
                        inside_share(view.columns, view.columns.taps, view.columns.positions);
  return cycles * inside * (whole || view.depth == 1 ? 1 : target.kernels.straddling);
}

/// What pixel lanes need at least: no lane idle, nothing to pack.
double least_cycles(const PixelView& view, const TargetInfo& target) {
  const auto products = static_cast<double>(view.all_outputs() * view.depth * view.rows.taps * view.columns.taps) *
                        static_cast<double>(view.rows.positions * view.columns.positions);
  return products / static_cast<double>(target.lanes_f32() * (target.fma ? 2 : 1)) / target.kernels.reached;
}

constexpr int64_t kMostUnrolledTaps = 64;  // of all phases that have code of their own

bool in_range(const PixelView& view) {
  if (view.depth <= 0 || view.rows.stride > 4 || view.columns.stride > 4) return false;
  if (view.plain()) return view.taps() <= kMostTaps && view.columns.taps <= kMostColumns;
  int64_t copies = 1;
  for (const PixelDim* d : {&view.planes, &view.rows, &view.columns}) copies *= d->phases.missing ? 2 : 1;
  return copies * view.taps() <= kMostUnrolledTaps && view.columns.phases.count <= 8;
}

/// Rows of pixels: dense, or (of images) channels in blocks of a vector.
bool fits_layout(const ParamLayout& l, int64_t lanes, const PixelView& view) {
  const size_t rank = view.planes.axis < 0 ? 4 : 5;
  if (l.layout == Layout::channels_blocked(rank, 1, lanes)) return l.strides.back() == Dim(1);
  return l.layout.is_dense() && l.strides[rank - 1] == Dim(1);
}

/// Outputs whose weights are neighbours, 0: all lie at one stride; none: weights of a tile cannot be reached so.
std::optional<int64_t> block_of_weights(const PixelView& view, const Layout& layout) {
  const size_t rank = view.planes.axis < 0 ? 4 : 5;
  for (size_t d = 2; d < rank; ++d)
    if (layout.block_of(static_cast<int>(d)) != 1) return std::nullopt;
  if (view.outputs == 1) return 0;  // read one by one, wherever they lie
  const int64_t block = layout.block_of(0);
  if (view.outputs % block != 0 && view.groups > 1) return std::nullopt;
  return block == 1 ? 0 : block;
}

/// Chains that take turns are stored point by point (StageEmitter::store_outputs).
bool computes_functions(const Stage& stage) {
  bool found = false;
  for (const StageOutput& o : stage.outputs)
    o.value.visit([&](const Expr& e) { found |= is_function(e.op()) && e.op() != ExprOp::erf; });
  return found;
}

/// Neighbouring pixels that a tile of channel lanes has: rows of an unpadded 1x1 layer are one row.
int64_t run_of_pixels(const PixelView& view) {
  const bool one_row = view.taps() == 1 && view.rows.stride == 1 && view.columns.stride == 1;
  return one_row ? view.rows.results * view.columns.results : view.columns.results;
}

/// Stores of channel lanes into dense maps: squares turned in registers (stage_turned.cpp), or every lane by itself.
double scatter_cycles(const Stage& stage, const PixelView& view, const TargetInfo& target) {
  const int64_t map = view.planes.results * view.rows.results * view.columns.results;
  const auto elements = static_cast<double>(view.all_outputs() * map);
  const int64_t lanes = target.lanes_f32(), run = std::min(run_of_pixels(view), lanes);
  const bool turns = view.plain() && stage.outputs.size() == 1 && byte_size(stage.outputs[0].dtype) == 4 &&
                     !stage.outputs[0].clipped && !computes_functions(stage) && (lanes >= 8 || run == lanes) &&
                     2 * run >= lanes && run >= 4;
  if (!turns) return elements * (share_a_set(map * 4) ? target.kernels.scattered_in_set : target.kernels.scattered);
  return elements * (std::log2(static_cast<double>(lanes)) + 1) / static_cast<double>(run);
}

/// Dense maps of channels that no cache holds together: each tile of channel lanes fetches a line again for every row
/// of taps of every channel. Packed rows lie close together.
double collision_cycles(const PixelView& view, const TargetInfo& target) {
  int64_t map = 4, positions = 1, rows = view.depth;  // bytes of a map
  for (const PixelDim* d : {&view.planes, &view.rows, &view.columns}) {
    if (d->axis < 0) continue;
    map *= d->extent.value();
    positions *= d->positions;
    if (d != &view.columns) rows *= weights_of(*d);
  }
  if (!rows_collide(view.depth, map, target)) return 0;
  constexpr int64_t kVectors = 2;  // of a tile's weights
  const int64_t pixels = (target.vector_registers - kVectors - 1) / kVectors;
  const int64_t blocks = view.groups * ceil_of(view.outputs, kVectors * target.lanes_f32());
  const int64_t lines = ceil_of(positions, pixels) * blocks * rows * view.columns.phases.count;
  return static_cast<double>(lines) * target.costs.far;
}

}  // namespace

bool pixels_pay(const Region& region, const TargetInfo& target) {
  const auto view = view_pixels(region);
  if (!view || !view->plain() || !in_range(*view)) return false;
  if (region.stages[0].anchor == Anchor::window) return false;  // depthwise: nothing to share between outputs
  const double bar = 0.95 * channel_lane_cycles(*view, target);
  if (least_cycles(*view, target) >= bar) return false;
  return least_band_cycles(*view, target) < bar;
}

bool pixels_pay_for_dense(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target) {
  const auto view = view_pixels(region);
  if (!view || !in_range(*view)) return false;
  const Stage& stage = region.stages[0];
  for (const StageOutput& o : stage.outputs)
    if (o.param < 0 || !layouts[static_cast<size_t>(o.param)].layout.is_dense()) return false;
  const Read& weights = stage.reads[static_cast<size_t>(view->weights)];
  const auto block = block_of_weights(*view, layouts[static_cast<size_t>(weights.index)].layout);
  const double cycles = block ? least_band_cycles(*view, target, view->planes.positions, *block) : INFINITY;
  if (cycles == INFINITY) return false;
  if (stage.anchor == Anchor::window) return view->phases() > 1;  // nothing else but the generic nest
  const double lanes = channel_lane_cycles(*view, target) * (view->phases() > 1 ? target.kernels.phased_lanes : 1);
  const Read& data = stage.reads[static_cast<size_t>(view->data)];
  const bool dense = layouts[static_cast<size_t>(data.index)].layout.is_dense();
  return cycles < lanes + scatter_cycles(stage, *view, target) + (dense ? collision_cycles(*view, target) : 0);
}

double pixel_lane_cycles(const Region& region, const TargetInfo& target) {
  const auto view = view_pixels(region);
  if (!view || !in_range(*view)) return INFINITY;
  return least_band_cycles(*view, target);
}

std::vector<Ranked<PixelSchedule>> schedule_pixels(const Region& region, const std::vector<ParamLayout>& layouts,
                                                   const TargetInfo& target, size_t most) {
  const auto view = view_pixels(region);
  if (!view || !in_range(*view)) return {};
  const Stage& stage = region.stages[0];
  const auto layout_of = [&](int read) -> const ParamLayout& {
    return layouts[static_cast<size_t>(stage.reads[static_cast<size_t>(read)].index)];
  };
  const int64_t lanes = target.lanes_f32();
  const auto block = block_of_weights(*view, layout_of(view->weights).layout);
  if (!block || !fits_layout(layout_of(view->data), lanes, *view)) return {};
  const auto result_of = [&](const StageOutput& o) -> const ParamLayout& {
    return layouts[static_cast<size_t>(o.param)];
  };
  for (const StageOutput& o : stage.outputs)
    if (o.param < 0 || !fits_layout(result_of(o), lanes, *view) ||
        result_of(o).layout != result_of(stage.outputs[0]).layout)
      return {};
  if (result_of(stage.outputs[0]).layout.is_dense() ? !result_stage(region, *view) : !view->plain()) return {};
  const int64_t batch = stage.domain[0].constant().value_or(1);
  const auto work = static_cast<double>(work_of(stage));
  std::vector<Ranked<PixelSchedule>> schedules;
  const bool shared = wanted_parts(work, target) > 1;
  for (const auto& [cycles, choice] :
       bands_by_time(*view, target, batch * view->planes.positions, shared, most, *block)) {
    PixelSchedule s;
    s.pixels = choice.tile.vectors;
    s.tile_o = choice.tile.outputs;
    s.bands = choice.bands;
    s.pack_all = choice.all_groups;
    s.parts_o = 1;
    s.parts_p = choice.bands;
    schedules.push_back({cycles, s});
  }
  return schedules;
}

}  // namespace opfuse
