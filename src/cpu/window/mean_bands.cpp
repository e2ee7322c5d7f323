#include "cpu/window/mean_bands.hpp"

#include "cpu/contraction/overlap.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/window/chain_cut.hpp"

namespace opfuse {
namespace {

constexpr int64_t kFewRows = 8;  // fewer are not cut: parts of them take channels

int64_t parts_of_rows(const Region& region, int64_t rows, const TargetInfo& target) {
  const auto chain = view_chain(region);
  if (!std::holds_alternative<ChainView>(chain)) return rows < kFewRows ? 1 : 2;
  const std::vector<Dim>& first = region.stages[0].domain;
  const auto& view = std::get<ChainView>(chain);
  const TileProblem row{first[1].value(), first[3].value(), 1};
  const RegisterTile tile = choose_tile(row, region.stages[0], view.first, target);
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
