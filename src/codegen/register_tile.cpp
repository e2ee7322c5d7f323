#include "codegen/register_tile.hpp"

#include <algorithm>
#include <cmath>

namespace opfuse {
namespace {

/// Cycles of one reduction step of a tile.
double step_cycles(int64_t width, int64_t vectors, bool fma) {
  const auto w = static_cast<double>(width), v = static_cast<double>(vectors);
  const double arithmetic = w * v / 2 * (fma ? 1 : 2);
  return std::max({arithmetic, (w + v) / 2, v * 1.6, 4.0}) + 0.5;
}

double row_cycles(int64_t pixels, int64_t width, int64_t vectors, bool fma) {
  double cycles = static_cast<double>(pixels / width) * step_cycles(width, vectors, fma);
  if (pixels % width) cycles += step_cycles(pixels % width, vectors, fma);
  return cycles;
}

}  // namespace

bool fits(const RegisterTile& t, const TargetInfo& target) {
  return t.width * t.vectors + t.vectors + 1 <= target.vector_registers;
}

int64_t pixel_count(const Stage& stage, int axis) {
  return axis < 0 ? 1 : axis_extent(stage, axis).constant().value_or(1 << 10);
}

int64_t widest(int64_t pixels, int64_t vectors, const TargetInfo& target) {
  int64_t best = 1;
  double least = INFINITY;
  for (int64_t w = 1; fits({vectors, w}, target) && w <= pixels; ++w)
    if (const double c = row_cycles(pixels, w, vectors, target.fma); c < least) least = c, best = w;
  return best;
}

RegisterTile choose_tile(int64_t channels, int64_t pixels, const TargetInfo& target) {
  const int64_t lanes = target.lanes_f32();
  const int64_t count = (channels + lanes - 1) / lanes;
  RegisterTile best;
  double least = INFINITY;
  for (int64_t v = 1; v <= (pixels == 1 ? 8 : 4); ++v) {
    if (!fits({v, 1}, target)) break;
    const int64_t w = widest(pixels, v, target);
    const double cycles = static_cast<double>((count + v - 1) / v) * row_cycles(pixels, w, v, target.fma);
    if (cycles < least * 0.999) least = cycles, best = {v, w};
  }
  return best;
}

}  // namespace opfuse
