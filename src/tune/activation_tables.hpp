// Activations by tables of polynomials: on where a schedule has them, off everywhere with --exact, in every report.
#pragma once

#include "program/program.hpp"
#include "target/target.hpp"

namespace opfuse {

void forbid_activation_tables(Program& program);

/// One note that says how many kernels have which, and how close they are.
void note_activation_tables(Program& program, const TargetInfo& target);

}  // namespace opfuse
