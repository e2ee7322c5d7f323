// When lanes should hold pixels instead of output channels, and the tile, bands and parts of that form.
//
// Channel lanes round the outputs (of every group) up to whole vectors; pixel lanes round rows up to their zeros and
// pay for packing the input and for turning the results. Both are estimated in cycles of one core; layouts play no
// part, so that the same question has the same answer when layouts are wished and when schedules are chosen.
#include <algorithm>
#include <cmath>

#include "base/integers.hpp"
#include "cpu/pixels/pixel_view.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/schedules.hpp"

namespace opfuse {
namespace {

constexpr double kReached = 0.85;       // of the multiply-add rate, by either form
constexpr double kStraddling = 3.5;     // times as slow: lanes of several groups in one vector
constexpr double kCyclesToTurn = 0.35;  // per element, to pack it or to store it
constexpr int64_t kMostTaps = 121, kMostColumns = 15;

struct PixelTile {
  int64_t outputs = 1, vectors = 1;
};

/// Cycles of one step: arithmetic, loads (a vector at any address costs two), latency.
double step_cycles(int64_t outputs, int64_t vectors, const TargetInfo& target) {
  const auto o = static_cast<double>(outputs), v = static_cast<double>(vectors);
  const auto units = static_cast<double>(target.fma_units), loads = static_cast<double>(target.load_units);
  const auto latency = static_cast<double>(target.fma_latency);
  return std::max({o * v / units * (target.fma ? 1 : 2), (2 * v + o) / loads, latency}) + 0.5;
}

double tiles_cycles(int64_t outputs, int64_t vectors, const PixelTile& tile, const TargetInfo& target) {
  const auto row = [&](int64_t o) {
    const int64_t whole = vectors / tile.vectors;
    double cycles = static_cast<double>(whole) * step_cycles(o, tile.vectors, target);
    if (vectors % tile.vectors) cycles += step_cycles(o, vectors % tile.vectors, target);
    return cycles;
  };
  const int64_t whole = outputs / tile.outputs;
  double cycles = static_cast<double>(whole) * row(tile.outputs);
  if (outputs % tile.outputs) cycles += row(outputs % tile.outputs);
  return cycles;
}

PixelTile choose_pixel_tile(int64_t outputs, int64_t vectors, const TargetInfo& target, double& least) {
  PixelTile best;
  least = INFINITY;
  for (int64_t o = 1; o <= std::min<int64_t>(outputs, 16); ++o)
    for (int64_t v = 1; v <= vectors && o * v + v + 1 <= target.vector_registers; ++v)
      if (const double c = tiles_cycles(outputs, vectors, {o, v}, target); c < least) least = c, best = {o, v};
  return best;
}

struct PixelChoice {
  PixelTile tile;
  int64_t bands = 1;
  bool all_groups = true;
  double cycles = INFINITY;  ///< per image
};

double band_cycles(const PixelView& view, const PixelPacking& p, bool all_groups) {
  const double group_channels = static_cast<double>(p.packed_channels);
  const double channels = all_groups ? group_channels : group_channels * static_cast<double>(view.groups);
  const double packed = channels * static_cast<double>(p.channel);
  const double stored = static_cast<double>(p.stage_outputs * p.band_rows * view.width);
  return kCyclesToTurn * (packed + stored);
}

double cycles_of(const PixelView& view, const TargetInfo& target, int64_t bands, PixelChoice& choice) {
  const PixelPacking p = pack_pixels(view, target.lanes_f32(), bands, choice.all_groups);
  const auto steps = static_cast<double>(view.depth * view.row_taps * view.column_taps * view.groups);
  double tiles = 0;
  choice.tile = choose_pixel_tile(view.outputs, result_vectors(view, p, p.band_rows), target, tiles);
  const double band = band_cycles(view, p, choice.all_groups) + tiles * steps / kReached;
  return band * static_cast<double>(view.height) / static_cast<double>(p.band_rows);
}

/// Two workers that share so many parts: the larger share over half of them.
double imbalance(int64_t parts) { return static_cast<double>(ceil_of(parts, 2) * 2) / static_cast<double>(parts); }

/// By the number of bands, the least work first; none when not even a row fits the cache. `shared`: by several workers.
std::vector<Ranked<PixelChoice>> bands_by_time(const PixelView& view, const TargetInfo& target, int64_t batch,
                                               bool shared, size_t most) {
  Fastest<PixelChoice> fastest(most);
  const double room = 0.6 * static_cast<double>(target.l2_bytes);
  for (const bool all_groups : {true, false}) {
    if (!all_groups && view.groups == 1) break;
    for (int64_t rows = view.height, fitting = 0; rows > 0 && fitting < 40; --rows) {
      PixelChoice choice;
      choice.bands = ceil_of(view.height, rows);
      choice.all_groups = all_groups;
      if (ceil_of(view.height, choice.bands) != rows) continue;
      const PixelPacking p = pack_pixels(view, target.lanes_f32(), choice.bands, all_groups);
      if (static_cast<double>(p.scratch_bytes()) > room) continue;
      ++fitting;
      choice.cycles = cycles_of(view, target, choice.bands, choice);
      const double even = shared ? 1 + 0.6 * (imbalance(choice.bands * batch) - 1) : 1;
      fastest.offer(choice.cycles * even, choice);
    }
  }
  return fastest.all();
}

/// Per image, of one core; infinite where not even a row fits the cache.
double least_band_cycles(const PixelView& view, const TargetInfo& target) {
  const auto found = bands_by_time(view, target, 1, false, 1);
  return found.empty() ? INFINITY : found.front().choice.cycles;
}

/// Cycles per image of the form with channels in lanes.
double channel_lane_cycles(const PixelView& view, const TargetInfo& target) {
  const int64_t lanes = target.lanes_f32();
  const bool whole = view.groups == 1 || view.outputs % lanes == 0;
  const int64_t vectors = whole ? view.groups * ceil_of(view.outputs, lanes) : ceil_of(view.all_outputs(), lanes);
  const auto steps = static_cast<double>(vectors * view.depth * view.row_taps * view.column_taps);
  const double cycles = steps * static_cast<double>(view.height * view.width) / (target.fma ? 2 : 1) / kReached;
  const double inside =
      inside_share(view.rows, view.row_taps, view.height) * inside_share(view.columns, view.column_taps, view.width);
  return cycles * inside * (whole || view.depth == 1 ? 1 : kStraddling);
}

/// What pixel lanes need at least: no lane idle, nothing to pack.
double least_cycles(const PixelView& view, const TargetInfo& target) {
  const auto products = static_cast<double>(view.all_outputs() * view.depth * view.row_taps * view.column_taps) *
                        static_cast<double>(view.height * view.width);
  return products / static_cast<double>(target.lanes_f32() * (target.fma ? 2 : 1)) / kReached;
}

bool in_range(const PixelView& view) {
  return view.row_taps * view.column_taps <= kMostTaps && view.column_taps <= kMostColumns && view.rows.stride <= 4 &&
         view.columns.stride <= 4 && view.depth > 0;
}

bool fits_layout(const ParamLayout& l, int64_t lanes, int columns) {
  if (l.layout == Layout::channels_blocked(4, 1, lanes)) return l.strides.back() == Dim(1);
  return l.layout.is_dense() && l.strides[static_cast<size_t>(columns)] == Dim(1);
}

}  // namespace

bool pixels_pay(const Region& region, const TargetInfo& target) {
  const auto view = view_pixels(region);
  if (!view || !in_range(*view)) return false;
  if (region.stages[0].anchor == Anchor::window) return false;  // depthwise: nothing to share between outputs
  const double bar = 0.95 * channel_lane_cycles(*view, target);
  if (least_cycles(*view, target) >= bar) return false;
  return least_band_cycles(*view, target) < bar;
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
  // (weights of one output per group are read one by one, wherever they lie)
  if (view->outputs > 1 && !layout_of(view->weights).layout.is_dense()) return {};
  if (layout_of(view->weights).layout.block_of(2) != 1 || layout_of(view->weights).layout.block_of(3) != 1) return {};
  if (!fits_layout(layout_of(view->data), lanes, 3)) return {};
  for (const StageOutput& o : stage.outputs)
    if (o.param < 0 || !fits_layout(layouts[static_cast<size_t>(o.param)], lanes, 3) ||
        layouts[static_cast<size_t>(o.param)].layout != layouts[static_cast<size_t>(stage.outputs[0].param)].layout)
      return {};
  const int64_t batch = stage.domain[0].constant().value_or(1);
  const auto work = static_cast<double>(work_of(stage));
  std::vector<Ranked<PixelSchedule>> schedules;
  for (const auto& [cycles, choice] : bands_by_time(*view, target, batch, wanted_parts(work, target) > 1, most)) {
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
