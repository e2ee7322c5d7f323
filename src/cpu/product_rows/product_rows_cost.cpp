#include "cpu/product_rows/product_rows_cost.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/contraction/register_tile.hpp"
#include "cpu/nest_parts.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/workspace.hpp"

namespace opfuse {
namespace {

constexpr int64_t kTileRows = 8;      ///< of a part: a register tile
constexpr int64_t kPartRows = 64;     ///< of a part, where there are as many parts as a few threads need
constexpr int64_t kOpenBand = 32;     ///< rows of a band where their number is open
constexpr int64_t kUsualThreads = 2;  ///< at least

int64_t images_of(const Region& region, const ProductRowsView& view) {
  int64_t images = 1;
  for (int axis = 0; axis < view.row; ++axis)
    images *= region.stages[0].domain[static_cast<size_t>(axis)].constant().value_or(1);
  return images;
}

std::optional<int64_t> rows_of(const Region& region, const ProductRowsView& view) {
  return region.stages[0].domain[static_cast<size_t>(view.row)].constant();
}

/// Two workers share an even number of parts.
int64_t even(int64_t parts) { return parts > 1 ? ceil_of(parts, 2) * 2 : parts; }

/// The share of a launch's work that the busiest thread has.
double busiest(int64_t parts, int64_t threads) {
  return static_cast<double>(ceil_of(parts, threads)) / static_cast<double>(std::max<int64_t>(parts, 1));
}

/// Pieces of the rows of an image: tiles for many threads; a few threads gain more by longer pieces, over which the
/// weights pass at once.
int64_t most_pieces(int64_t rows, int64_t images, const TargetInfo& target) {
  const int64_t tiles = std::max<int64_t>(rows / kTileRows, 1);
  if (target.launch.threads > kFewThreads) return tiles;
  const int64_t threads = std::max(target.launch.threads, kUsualThreads);
  return std::max<int64_t>(std::min(tiles, ceil_of(even(threads), images)), rows / kPartRows / 2 * 2);
}

double weight_bytes(const Region& region, const ProductRowsView& view) {
  return 4.0 * static_cast<double>(view.columns * channel_depth(region.stages[0], view.product));
}

/// Parts of the two launches apart.
int64_t parts_of_product(const Region& region, const ProductRowsView& view, const TargetInfo& target) {
  return wanted_parts(static_cast<double>(work_of(region.stages[0])), target, weight_bytes(region, view));
}

int64_t parts_of_rows(const Region& region, int64_t rows, const ProductRowsView& view) {
  const auto passes = static_cast<double>(region.stages[1].reductions.size() + 1);
  const double work = passes * static_cast<double>(rows * view.columns);
  return std::clamp<int64_t>(static_cast<int64_t>(work) / (2 * kNestGrain) * 2, 1, std::min(rows, kMostNestParts));
}

/// The busiest thread waits for what others could do if columns were cut too.
double unshared(const Region& region, const ProductRowsView& view, const ProductRowsCut& cut,
                const ProductRowsCycles& cycles, const TargetInfo& target) {
  const int64_t threads = std::max(target.launch.threads, kUsualThreads);
  const int64_t rows = images_of(region, view) * rows_of(region, view).value_or(1);
  const double first = busiest(parts_of_product(region, view, target), threads);
  const double second = busiest(parts_of_rows(region, rows, view), threads);
  const double joined = busiest(cut.parts, threads);
  const double apart = (cycles.product * first + cycles.rows * second) / (cycles.product + cycles.rows);
  return std::max(0.0, joined / apart - 1) * cycles.time;
}

/// All weights pass over each band. Where they do not stay in L2, what a band's products do not hide is waited for.
double weights_again(const Region& region, const ProductRowsView& view, const ProductRowsCut& cut,
                     double product_cycles, const TargetInfo& target) {
  const double bytes = weight_bytes(region, view);
  if (bytes <= target.shares.weights * static_cast<double>(target.l2_bytes)) return 0;
  const bool near = bytes <= target.shares.l3_weights * static_cast<double>(target.l3_bytes);
  const double arrival = bytes / (near ? target.rates.l3_weights : target.rates.memory);
  const int64_t rows = rows_of(region, view).value_or(1);
  const auto passes = static_cast<double>(images_of(region, view) * ceil_of(rows, cut.band));
  const double hidden = product_cycles / std::max(passes, 1.0);
  return std::max(0.0, passes - 1) * (std::max(0.0, arrival - hidden) + target.kernels.exposed_weights * arrival);
}

/// Register tiles end with each band.
double ragged_tiles(const Region& region, const ProductRowsView& view, const ProductRowsCut& cut,
                    const TargetInfo& target) {
  const int64_t rows = rows_of(region, view).value_or(1);
  const auto cycles = [&](int64_t pixels) {
    TileProblem problem;
    problem.channels = view.columns;
    problem.pixels = pixels;
    return tile_cycles(problem, choose_tile(problem, target), target);
  };
  const auto bands = static_cast<double>(rows) / static_cast<double>(cut.band);
  const auto steps = static_cast<double>(images_of(region, view) * channel_depth(region.stages[0], view.product));
  return steps * std::max(0.0, bands * cycles(std::min(rows, cut.band)) - cycles(rows));
}

/// What leaves L2 between two launches is waited for on its way out and back; the price of bytes takes it for hidden
/// behind instructions.
double stays_in_cache(const Region& region, const ProductRowsView& view, const TargetInfo& target) {
  const int64_t rows = images_of(region, view) * rows_of(region, view).value_or(1);
  const double bytes = 4.0 * static_cast<double>(rows * view.columns);
  if (bytes <= static_cast<double>(target.l2_bytes)) return 0;
  return (1 - target.kernels.overlap_loss) * 2 * bytes / target.rates.maps;
}

}  // namespace

int64_t most_rows_in_scratch(const ProductRowsView& view, const TargetInfo& target) {
  return static_cast<int64_t>(scratch_room(target.shares.chain_band, target)) / view.scratch_bytes(1, target);
}

ProductRowsCut cut_product_rows(const Region& region, const ProductRowsView& view, const TargetInfo& target) {
  const int64_t images = std::max<int64_t>(images_of(region, view), 1);
  const int64_t most = std::max<int64_t>(most_rows_in_scratch(view, target), 1);
  const auto rows = rows_of(region, view);
  const double work = static_cast<double>(work_of(region.stages[0])) * static_cast<double>(rows ? 1 : kOpenBand);
  const int64_t wanted = wanted_parts(work, target);
  ProductRowsCut cut;
  if (images >= wanted) {
    cut.parts_batch = std::min(images, even(wanted));
  } else {
    cut.parts_batch = images;
    const int64_t pieces = even(ceil_of(wanted, images));
    cut.parts_p = rows ? std::min(pieces, most_pieces(*rows, images, target)) : pieces;
  }
  if (!rows) {
    cut.band = std::min(most, kOpenBand);
    return cut;
  }
  const int64_t piece = std::max<int64_t>(ceil_of(*rows, cut.parts_p), 1);
  cut.band = ceil_of(piece, ceil_of(piece, most));
  cut.parts_p = std::min(cut.parts_p, std::max<int64_t>(ceil_of(*rows, cut.band), 1));
  cut.parts = cut.parts_batch * cut.parts_p;
  return cut;
}

double product_rows_lost(const Region& region, const ProductRowsCycles& cycles, const TargetInfo& target) {
  const auto found = view_product_rows(region);
  const auto* view = std::get_if<ProductRowsView>(&found);
  if (!view) return 0;
  const ProductRowsCut cut = cut_product_rows(region, *view, target);
  return unshared(region, *view, cut, cycles, target) + weights_again(region, *view, cut, cycles.product, target) +
         ragged_tiles(region, *view, cut, target) - stays_in_cache(region, *view, target);
}

}  // namespace opfuse
