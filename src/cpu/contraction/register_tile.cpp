#include "cpu/contraction/register_tile.hpp"

#include <algorithm>
#include <cmath>

#include "base/integers.hpp"
#include "cpu/contraction/codes.hpp"

namespace opfuse {
namespace {

int64_t products(const RegisterTile& t) {
  return t.half ? t.width * (t.vectors - 1) + ceil_of(t.width, 2) : t.width * t.vectors;
}

/// Cycles of one reduction step of a tile.
double step_cycles(const RegisterTile& tile, const TargetInfo& target) {
  const auto w = static_cast<double>(tile.width), v = static_cast<double>(tile.vectors);
  const auto units = static_cast<double>(target.fma_units), loads = static_cast<double>(target.load_units);
  const double arithmetic = static_cast<double>(products(tile)) / units * (target.fma ? 1 : 2);
  const KernelCosts& costs = target.kernels;
  const double slowest = std::max({arithmetic, costs.load_slack * (w + v) / loads, v * costs.weights_vector,
                                   static_cast<double>(target.fma_latency)});
  return slowest + costs.step;
}

double row_cycles(int64_t pixels, const RegisterTile& tile, const TargetInfo& target) {
  const int64_t whole = pixels / tile.width, rest = pixels % tile.width;
  double cycles = static_cast<double>(whole) * step_cycles(tile, target);
  if (rest) cycles += step_cycles({tile.vectors, rest, tile.half}, target);
  return cycles;
}

/// Cycles of all rows of a block, `part` of the tile's vectors; whole rows that are narrow are stacked into one tile.
double map_cycles(const TileProblem& problem, const RegisterTile& tile, RegisterTile part, const TargetInfo& target) {
  const int64_t rows = problem.rows, width = tile.width;
  const int64_t height = width == problem.pixels ? tallest(rows, tile, target) : 1;
  if (height == 1) return static_cast<double>(rows) * row_cycles(problem.pixels, part, target);
  const auto cycles = [&](int64_t stacked) { return step_cycles({part.vectors, width * stacked, part.half}, target); };
  const int64_t whole = rows / height, rest = rows % height;
  return static_cast<double>(whole) * cycles(height) + (rest ? cycles(rest) : 0);
}

}  // namespace

bool fits(const RegisterTile& t, const TargetInfo& target, int64_t kept) {
  return products(t) + t.vectors + 1 + t.half + kept <= target.vector_registers;
}

bool ends_in_half(int64_t channels, int64_t lanes, const TargetInfo& target) {
  const int64_t rest = channels % lanes;
  const bool halves = target.has("avx512vl") && lanes == 16;  // of a vector are worth a register's name of their own
  return halves && rest > 0 && rest <= lanes / 2;
}

bool shares_vectors(const ElementTypes& types, const TargetInfo& target) {
  return types.sum == DType::f32 || has_byte_products(target);
}

bool TileProblem::half(const TargetInfo& target) const {
  return sums == 1 && !grouped && shares_vectors(types, target) && ends_in_half(channels, types.lanes(target), target);
}

int64_t pixel_count(const Stage& stage, int axis) {
  return axis < 0 ? 1 : axis_extent(stage, axis).constant().value_or(1 << 10);
}

std::vector<Ranked<int64_t>> widths_by_time(int64_t pixels, int64_t vectors, const TargetInfo& target, int64_t kept,
                                            bool half, size_t most) {
  Fastest<int64_t> fastest(most);
  for (int64_t w = 1; w == 1 || (fits({vectors, w, half}, target, kept) && w <= pixels); ++w)
    fastest.offer(row_cycles(pixels, {vectors, w, half}, target), w);
  return fastest.all();
}

int64_t tallest(int64_t rows, const RegisterTile& tile, const TargetInfo& target, int64_t kept) {
  int64_t height = 1;
  while (height < rows && fits({tile.vectors, tile.width * (height + 1), tile.half}, target, kept)) ++height;
  return height;
}

bool two_blocks_fit(int64_t block_bytes, const TargetInfo& target) {
  return 2 * static_cast<double>(block_bytes) < target.shares.weights * static_cast<double>(target.l2_bytes);
}

/// The last block has code of its own where it is narrower.
double tile_cycles(const TileProblem& problem, const RegisterTile& tile, const TargetInfo& target) {
  const int64_t count = ceil_of(problem.channels, problem.types.lanes(target)) * problem.sums, v = tile.vectors;
  const int64_t before = (count - 1) / v, rest = count - before * v;
  const RegisterTile block{v, tile.width}, last{rest, tile.width, rest > 1 && problem.half(target)};
  const double cycles = static_cast<double>(before) * map_cycles(problem, block, block, target) +
                        map_cycles(problem, before ? block : RegisterTile{v, tile.width, last.half}, last, target);
  return rest == v ? cycles : target.kernels.ragged_blocks * cycles;
}

RegisterTile choose_tile(const TileProblem& problem, const TargetInfo& target) {
  RegisterTile best;
  double least = INFINITY;
  for (int64_t v = problem.sums; v <= (problem.pixels == 1 ? 8 : 4); v += problem.sums) {
    if (!fits({v, 1}, target)) break;
    const bool half = v > 1 && problem.channels <= v * problem.types.lanes(target) && problem.half(target);
    const RegisterTile tile{v, widths_by_time(problem.pixels, v, target, 0, half, 1).front().choice, half};
    const double cycles = tile_cycles(problem, tile, target);
    if (cycles < least * 0.999) least = cycles, best = tile;
  }
  return best;
}

}  // namespace opfuse
