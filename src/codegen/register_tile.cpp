#include "codegen/register_tile.hpp"

#include <algorithm>
#include <cmath>

#include "base/integers.hpp"

namespace opfuse {
namespace {

constexpr double kRaggedBlocks = 1.02;
constexpr double kLoadSlack = 1.12;  // two loads in every cycle is more than the caches give

/// Cycles of one reduction step of a tile.
double step_cycles(int64_t width, int64_t vectors, bool fma) {
  const auto w = static_cast<double>(width), v = static_cast<double>(vectors);
  const double arithmetic = w * v / 2 * (fma ? 1 : 2);
  return std::max({arithmetic, kLoadSlack * (w + v) / 2, v * 1.6, 4.0}) + 0.5;
}

double row_cycles(int64_t pixels, int64_t width, int64_t vectors, bool fma) {
  const int64_t whole = pixels / width;
  double cycles = static_cast<double>(whole) * step_cycles(width, vectors, fma);
  if (pixels % width) cycles += step_cycles(pixels % width, vectors, fma);
  return cycles;
}

/// Cycles of all rows of a block of `vectors` vectors, at most the tile's; whole rows that are narrow are stacked into
/// one tile.
double map_cycles(const TileProblem& problem, const RegisterTile& tile, int64_t vectors, const TargetInfo& target) {
  const int64_t rows = problem.rows, width = tile.width;
  const int64_t height = width == problem.pixels ? tallest(rows, tile, target) : 1;
  if (height == 1) return static_cast<double>(rows) * row_cycles(problem.pixels, width, vectors, target.fma);
  const int64_t whole = rows / height;
  double cycles = static_cast<double>(whole) * step_cycles(width * height, vectors, target.fma);
  if (rows % height) cycles += step_cycles(width * (rows % height), vectors, target.fma);
  return cycles;
}

}  // namespace

bool fits(const RegisterTile& t, const TargetInfo& target, int64_t kept) {
  return t.width * t.vectors + t.vectors + 1 + kept <= target.vector_registers;
}

int64_t pixel_count(const Stage& stage, int axis) {
  return axis < 0 ? 1 : axis_extent(stage, axis).constant().value_or(1 << 10);
}

int64_t widest(int64_t pixels, int64_t vectors, const TargetInfo& target, int64_t kept) {
  int64_t best = 1;
  double least = INFINITY;
  for (int64_t w = 1; fits({vectors, w}, target, kept) && w <= pixels; ++w)
    if (const double c = row_cycles(pixels, w, vectors, target.fma); c < least) least = c, best = w;
  return best;
}

int64_t tallest(int64_t rows, const RegisterTile& tile, const TargetInfo& target) {
  int64_t height = 1;
  while (height < rows && fits({tile.vectors, tile.width * (height + 1)}, target)) ++height;
  return height;
}

bool two_blocks_fit(int64_t block_bytes, const TargetInfo& target) {
  return 2 * static_cast<double>(block_bytes) < kWeightShareOfL2 * static_cast<double>(target.l2_bytes);
}

double tile_cycles(const TileProblem& problem, const RegisterTile& tile, const TargetInfo& target) {
  const int64_t count = ceil_of(problem.channels, target.lanes_f32()) * problem.sums, v = tile.vectors;
  const int64_t blocks = count / v;
  const double whole = static_cast<double>(blocks) * map_cycles(problem, tile, v, target);
  if (count % v == 0) return whole;
  return kRaggedBlocks * (whole + map_cycles(problem, tile, count % v, target));  // the last block has code of its own
}

RegisterTile choose_tile(const TileProblem& problem, const TargetInfo& target) {
  RegisterTile best;
  double least = INFINITY;
  for (int64_t v = problem.sums; v <= (problem.pixels == 1 ? 8 : 4); v += problem.sums) {
    if (!fits({v, 1}, target)) break;
    const int64_t w = widest(problem.pixels, v, target);
    const double cycles = tile_cycles(problem, {v, w}, target);
    if (cycles < least * 0.999) least = cycles, best = {v, w};
  }
  return best;
}

}  // namespace opfuse
