// What can be drawn: each function adds one operator or block and returns whether it found operands.
#pragma once

#include "fuzz/drawer.hpp"

namespace opfuse::fuzz {

struct Draw {
  const char* name;
  int weight;
  bool (*draw)(Drawer&);
};

// One list per file of the folder.
const std::vector<Draw>& elementwise_draws();
const std::vector<Draw>& contraction_draws();
const std::vector<Draw>& window_draws();
const std::vector<Draw>& row_draws();
const std::vector<Draw>& movement_draws();
const std::vector<Draw>& shape_draws();
const std::vector<Draw>& indexing_draws();
const std::vector<Draw>& quantized_draws();
const std::vector<Draw>& block_draws();

/// Drawn where the options say so: seeds keep their graphs without it.
bool quantized_convolution(Drawer& d);
bool quantized_attention(Drawer& d);

/// A partner that broadcasts with `known`: of its shape, or a constant of a drawn part of it.
Value* broadcast_partner(Drawer& d, const Known& known, double low, double high);

/// The largest size that an axis has in `known`, or 0 for an open axis: weights need fixed extents.
int64_t fixed_extent(const Known& known, size_t axis);

}  // namespace opfuse::fuzz
