// What can be said of a layout for a given shape.
#pragma once

#include "tensor/layout.hpp"

namespace opfuse {

/// True when the buffer holds the elements in row-major order without padding: dense, or blocked where
/// the blocks change nothing (channels first among the dimensions that are not 1, a multiple of the block).
bool stores_row_major(const Layout& layout, const Shape& shape);

/// True when a box that starts at `offset` and has `shape` may be a view of a buffer of `parent` shape:
/// along blocked axes it starts at a block and ends at one or at the parent's end.
bool box_fits_blocks(const Layout& layout, const Shape& parent, const std::vector<Dim>& offset, const Shape& shape);

}  // namespace opfuse
