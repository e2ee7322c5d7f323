// Results in the place of operands that are read for the last time.
#pragma once

#include "program/program.hpp"

namespace opfuse {

/// Makes a launch's result a view of an operand's buffer where: that launch is the operand's last use, type
/// and layout are equal, and the operand is read once, at exactly the coordinates that are stored.
void share_buffers(Program& program);

}  // namespace opfuse
