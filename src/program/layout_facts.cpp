// Row-major in memory: physical dimensions of extent 1 left out, the rest walks the axes in order, and
// each axis from coarse to fine units, with whole blocks.
#include "program/layout_facts.hpp"

#include <algorithm>

namespace opfuse {

bool stores_row_major(const Layout& layout, const Shape& shape) {
  if (layout.is_dense()) return true;
  struct Step {
    int axis;
    int64_t unit;
  };
  std::vector<Step> steps;
  for (int axis : layout.order) {
    const int64_t block = layout.block_of(axis);
    const Dim& size = shape[static_cast<size_t>(axis)];
    if (block > 1 && (!size.is_constant() || size.value() % block != 0)) return false;
    if (block == 1 ? !(size == Dim(1)) : size.value() != block) steps.push_back({axis, block});
  }
  for (size_t i = 0; i < layout.blocks.size(); ++i) {
    int64_t unit = 1;
    for (size_t j = i + 1; j < layout.blocks.size(); ++j)
      if (layout.blocks[j].axis == layout.blocks[i].axis) unit *= layout.blocks[j].factor;
    if (layout.blocks[i].factor > 1) steps.push_back({layout.blocks[i].axis, unit});
  }
  return std::is_sorted(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.axis != b.axis ? a.axis < b.axis : a.unit > b.unit;
  });
}

bool box_fits_blocks(const Layout& layout, const Shape& parent, const std::vector<Dim>& offset, const Shape& shape) {
  for (const Block& block : layout.blocks) {
    const auto axis = static_cast<size_t>(block.axis);
    const int64_t factor = layout.block_of(block.axis);
    if (!offset[axis].is_constant() || !shape[axis].is_constant() || !parent[axis].is_constant()) return false;
    if (offset[axis].value() % factor != 0) return false;
    const int64_t end = offset[axis].value() + shape[axis].value();
    if (end % factor != 0 && end != parent[axis].value()) return false;
  }
  return true;
}

}  // namespace opfuse
