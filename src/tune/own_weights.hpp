// Weights that a choice lays out in another way for one launch.
#pragma once

#include "program/program.hpp"

namespace opfuse {

/// The buffer of the launch's operand `index` lies in `layout` from now on; other launches that read it keep theirs.
void lay_out_weights(Program& program, Launch& launch, size_t index, const Layout& layout);

}  // namespace opfuse
