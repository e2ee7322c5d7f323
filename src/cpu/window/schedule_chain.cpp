// Schedules of a convolution and a window in one kernel: each stage's own, then the parts. What the taps of a band of
// rows need lies in scratch, in L2; rows that the next band needs again move to the front, so only the first band of a
// part computes rows twice. Numbers: cpu/window/chain_schedule.hpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/integers.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/schedules.hpp"
#include "cpu/window/chain_cut.hpp"
#include "cpu/window/mean_view.hpp"
#include "cpu/workspace.hpp"

namespace opfuse {
namespace {

constexpr int64_t kMostParts = 32;
constexpr size_t kFirstTried = 16;  ///< schedules of the first stage, where scratch is bounded
constexpr int64_t kMostBands =
    1024;  ///< tried of an image's rows: each more costs chain_each, and trying it its number

/// How evenly two workers share the parts: the longer one's work over the half. Each owns a half of them, in order, and
/// then takes the other's from the back.
double imbalance(const std::vector<double>& parts) {
  size_t first[2] = {0, parts.size() / 2}, end[2] = {parts.size() / 2, parts.size()};
  double busy[2] = {0, 0};
  for (size_t left = parts.size(); left > 0; --left) {
    const int worker = busy[1] < busy[0], owner = first[worker] < end[worker] ? worker : 1 - worker;
    busy[worker] += parts[owner == worker ? first[owner]++ : --end[owner]];
  }
  return 2 * std::max(busy[0], busy[1]) / (busy[0] + busy[1]);
}

/// How evenly many workers share them: the longest of those who take the next part when they are done, over the mean.
double imbalance(const std::vector<double>& parts, int64_t threads) {
  if (threads <= kFewThreads) return imbalance(parts);
  std::vector<double> busy(static_cast<size_t>(threads), 0);
  double sum = 0;
  for (const double part : parts) *std::min_element(busy.begin(), busy.end()) += part, sum += part;
  return static_cast<double>(threads) * *std::max_element(busy.begin(), busy.end()) / sum;
}

/// Rows [r0, r1) of the window in terms of work: rows of the first stage that lie in its image.
double first_rows(const Region& region, const ChainView& view, int64_t r0, int64_t r1) {
  const int64_t low = std::max<int64_t>(0, r0 * view.rows.stride + view.rows.offset);
  const int64_t high = std::min(region.stages[0].domain[2].value(), low + view.rows_for(r1 - r0));
  return static_cast<double>(std::max<int64_t>(0, high - low));
}

ChainCut cut_into(const Region& region, const ChainView& view, int64_t vectors, int64_t nv, int64_t po, int64_t pp,
                  int64_t threads) {
  const int64_t blocks = ceil_of(vectors, nv), rows = region.stages[1].domain[2].value();
  std::vector<double> work;
  for (int64_t o = 0; o < po; ++o)
    for (int64_t p = 0; p < pp; ++p) {
      const int64_t held = std::min(vectors, (o + 1) * blocks / po * nv) - o * blocks / po * nv;
      work.push_back(static_cast<double>(held) * first_rows(region, view, p * rows / pp, (p + 1) * rows / pp));
    }
  double sum = 0;
  for (double part : work) sum += part;
  const double once = static_cast<double>(vectors) * first_rows(region, view, 0, rows);
  return {po, pp, sum / once, imbalance(work, threads)};
}

}  // namespace

std::vector<Ranked<ChainCut>> chain_cuts(const Region& region, const ChainView& view, int64_t nv,
                                         const TargetInfo& target, size_t most) {
  const int64_t lanes = target.lanes_f32();
  const int64_t vectors = ceil_of(region.stages[0].domain[1].value(), lanes), blocks = ceil_of(vectors, nv);
  const int64_t rows = region.stages[1].domain[2].value();
  const int64_t images = region.stages[0].domain[0].constant().value_or(1);
  const int64_t work = work_of(region.stages[0]) / std::max<int64_t>(images, 1);
  const int64_t wanted = wanted_parts(static_cast<double>(work), target);
  const int64_t threads = target.launch.threads, most_parts = std::max(kMostParts, 2 * threads);
  const auto means = view_means(region);  // rows are cut where bands end
  Fastest<ChainCut> fastest(most);
  for (int64_t o = 1; o <= blocks; ++o)
    for (int64_t p = means ? means->count : 1; p <= (means ? means->count : std::min(rows, kMostBands)); ++p) {
      if (o * p > std::max(std::min(2 * wanted, most_parts), p)) break;
      const ChainCut cut = cut_into(region, view, vectors, nv, o, p, threads);
      const auto parts = static_cast<double>(o * p);
      // one worker does all of it, two share it; of many parts a late worker loses less
      const bool two = threads <= kFewThreads;
      const double late = two ? target.parts.chain_late / parts : 0;
      const double odd = two && (o * p) % 2 ? target.parts.chain_odd : 0;
      fastest.offer(cut.recompute * ((two ? 1 : 0) + cut.imbalance + late + odd) + target.parts.chain_each * parts,
                    cut);
    }
  return fastest.all();
}

ChainCut cut_chain(const Region& region, const ChainView& view, int64_t nv, const TargetInfo& target) {
  const auto cuts = chain_cuts(region, view, nv, target, 1);
  return cuts.empty() ? ChainCut{} : cuts.front().choice;
}

namespace {

/// Of the first stage's schedules the fastest whose rows for one row of the window the workspace has room for; where
/// there is none, the one that takes least.
ContractionSchedule first_within(const std::vector<Ranked<ContractionSchedule>>& schedules, const Region& region,
                                 const ChainView& view, const TargetInfo& target) {
  const auto least = [&](const Ranked<ContractionSchedule>& s) {
    return chain_scratch(region, view, s.choice.nv, 1, target);
  };
  for (const auto& s : schedules)
    if (within_workspace(least(s), target)) return s.choice;
  return std::min_element(schedules.begin(), schedules.end(),
                          [&](const auto& a, const auto& b) { return least(a) < least(b); })
      ->choice;
}

/// Rows of the window per step, whose taps' rows lie in a share of L2, in equal steps.
int64_t band_of(const Region& region, const ChainView& view, int64_t parts_p, int64_t nv, const TargetInfo& target) {
  const int64_t rows = ceil_of(region.stages[1].domain[2].value(), parts_p);
  const int64_t row_bytes = region.stages[0].domain[3].value() * nv * target.lanes_f32() * 4;
  const double room = target.shares.chain_band * static_cast<double>(target.l2_bytes);
  int64_t band = 1;
  while (band < rows && static_cast<double>(view.rows_for(band + 1) * row_bytes) <= room &&
         within_workspace(chain_scratch(region, view, nv, band + 1, target), target))
    ++band;
  return ceil_of(rows, ceil_of(rows, band));
}

}  // namespace

int64_t held_rows(const Region& region, const ChainView& view, int64_t band) {
  return std::min(region.stages[0].domain[2].value(), view.rows_for(band));
}

int64_t chain_scratch(const Region& region, const ChainView& view, int64_t nv, int64_t band, const TargetInfo& target) {
  const int64_t rows = held_rows(region, view, band) * region.stages[0].domain[3].value();
  return 4 * nv * target.lanes_f32() * (rows + (view_means(region) ? 1 : 0));
}

std::vector<Ranked<ChainSchedule>> schedule_chain(const Region& region, const std::vector<ParamLayout>& layouts,
                                                  const TargetInfo& target, size_t most) {
  const auto found = view_chain(region);
  const auto* view = std::get_if<ChainView>(&found);
  if (!view) return {};
  const auto first = schedule_contraction(region, layouts, 0, target, target.launch.workspace ? kFirstTried : 1);
  const auto window = schedule_window(region, layouts, 1, target, 1);
  if (first.empty() || window.empty()) return {};
  ChainSchedule s;
  static_cast<ContractionSchedule&>(s) = first_within(first, region, *view, target);
  s.window_w = window.front().choice.tile_w;
  const int64_t rows = region.stages[0].domain[2].value();
  std::vector<Ranked<ChainSchedule>> schedules;
  for (const auto& [cycles, cut] : chain_cuts(region, *view, s.nv, target, most)) {
    s.parts_o = cut.parts_o;
    s.parts_p = cut.parts_p;
    s.band = band_of(region, *view, cut.parts_p, s.nv, target);
    // a step passes over its rows once per block; meanwhile the next block's weights arrive
    const int64_t passed = std::min(rows, s.band * view->rows.stride);
    const int64_t lines = s.step * s.nv * target.lanes_f32() / target.line_floats();
    s.chunk = rows;
    s.prefetch = ceil_of(lines, std::max<int64_t>(passed, 1));
    schedules.push_back({cycles, s});
  }
  return schedules;
}

}  // namespace opfuse
