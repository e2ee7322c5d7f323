#include "cpu/window/mean_bands.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/overlap.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/window/chain_cut.hpp"

namespace opfuse {
namespace {

constexpr size_t kCutsTried = 32;  // for many threads: one that bands divide
constexpr int64_t kFewRows = 8;    // fewer are not cut: parts of them take channels

/// Rows that many threads share, beside the channels.
int64_t parts_for_many(const Stage& map, int64_t rows, const TargetInfo& target) {
  const int64_t vectors = ceil_of(map.domain[1].constant().value_or(1), target.lanes_f32());
  const int64_t wanted = wanted_parts(static_cast<double>(work_of(map)) * 2, target);
  return std::clamp<int64_t>(ceil_of(wanted, vectors), 1, std::max<int64_t>(1, rows / 2));
}

int64_t parts_of_rows(const Region& region, int64_t rows, const TargetInfo& target) {
  const auto chain = view_chain(region);
  const bool many = target.launch.threads > kFewThreads;
  if (!std::holds_alternative<ChainView>(chain))
    return many ? parts_for_many(region.stages.back(), rows, target) : rows < kFewRows ? 1 : 2;
  const std::vector<Dim>& first = region.stages[0].domain;
  const auto& view = std::get<ChainView>(chain);
  const TileProblem row{first[1].value(), first[3].value(), 1};
  const RegisterTile tile = choose_tile(row, region.stages[0], view.first, target);
  if (many)
    for (const auto& [cycles, cut] : chain_cuts(region, view, tile.vectors, target, kCutsTried))
      if (rows % cut.parts_p == 0) return cut.parts_p;
  return cut_chain(region, view, tile.vectors, target).parts_p;
}

}  // namespace

int64_t mean_bands(const Region& region, const TargetInfo& target) {
  const int64_t rows =
      region.stages.back().domain.size() < 3 ? 1 : region.stages.back().domain[2].constant().value_or(1);
  int64_t bands = parts_of_rows(region, rows, target);
  while (rows % bands) --bands;
  return bands;
}

}  // namespace opfuse
