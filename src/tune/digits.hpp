// Rows of data that are multiplied as whole numbers with codes of weights (cpu/contraction/digits.hpp): on where a
// schedule has them, off everywhere with --exact, in every report.
#pragma once

#include "program/program.hpp"

namespace opfuse {

void forbid_digits(Program& program);

/// One note that says how many products have them, and what that costs in precision.
void note_digits(Program& program);

}  // namespace opfuse
