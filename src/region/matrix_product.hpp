// The loop nest of a matrix product of any rank, whatever its element types are: domain [batch.., m, n], reduce [k].
#pragma once

#include "region/lowering.hpp"

namespace opfuse {

/// Coordinates of both operands.
struct ProductMaps {
  IndexMap left, right;
};

/// Opens the stage of `node`, which multiplies its first two operands as matmul does.
ProductMaps open_product(Lowering& lowering, const Node& node);

}  // namespace opfuse
