// Results in the place of operands that are read for the last time.
#pragma once

#include "program/program.hpp"

namespace opfuse {

/// Makes a launch's result a view of an operand's buffer where: that launch is the operand's last use, type
/// and layout are equal, and the operand is read once, at exactly the coordinates that are stored. With `rows`, a row
/// stage's reductions may read it too, each row what is stored of that row, in kernels that reduce a row before they
/// store any of it: the generic nest, which asks kernel/reads.hpp where it stores earlier. A window stores a tile of a
/// row and then reduces for the next tile.
void share_buffers(Program& program, bool rows);

}  // namespace opfuse
