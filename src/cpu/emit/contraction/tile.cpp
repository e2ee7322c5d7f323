// Pixels of a tile: their bits in masks, and their places in the data.
#include "cpu/emit/contraction/tile.hpp"

namespace opfuse::cpu {

uint64_t Tile::columns(uint64_t bits) const {
  uint64_t mask = 0;
  for (int64_t y = 0; y < rows(); ++y) mask |= bits << (y * run->width);
  return mask;
}

uint64_t Tile::whole_rows(uint64_t bits) const {
  uint64_t mask = 0;
  for (int64_t y = 0; y < rows(); ++y)
    if (bits >> y & 1) mask |= ((uint64_t{1} << run->width) - 1) << (y * run->width);
  return mask;
}

void move_to_pixel(const ContractionPlan& plan, const Tile& tile, int64_t p, Env& env) {
  if (plan.view.pixel >= 0) env.axes[static_cast<size_t>(plan.view.pixel)].plus = p % tile.run->width;
  if (tile.row_run) env.axes[static_cast<size_t>(plan.row_axis)].plus = p / tile.run->width;
}

PixelSteps::PixelSteps(const ContractionPlan& plan, const Tile& tile)
    : pixel(plan.copies ? plan.k.i64(plan.copies->pixel * plan.copies->step) : plan.data_step(plan.view.pixel)),
      row(plan.copies ? plan.k.i64(plan.copies->row_elements()) : plan.data_step(tile.row_run ? plan.row_axis : -1)) {}

Value* PixelSteps::offset(Kernel& k, const Tile& tile, int64_t p, Value* more) const {
  Value* at = k.add(k.mul(pixel, k.i64(p % tile.run->width)), more);
  return k.add(at, k.mul(row, k.i64(p / tile.run->width)));
}

}  // namespace opfuse::cpu
