// A loop of launches over the steps of a sequence.
//
//     for step in steps:                      forwards, or from the last slice to the first
//       launch first .. first + launches - 1  with pointers to that step's slices
//
// Boxes of a loop's launches are the slices of the first step; a state's is the one its launch stores, and is read one
// step later (StepOperand::before).
#pragma once

#include "program/program.hpp"

namespace opfuse {

/// The loop that a launch is in, or null.
const StepLoop* loop_of(const Program& program, size_t launch);

/// Bytes from one slice of a box to the next one of its loop, negative backwards.
Dim step_bytes(const Program& program, const StepLoop& loop, int buffer);

}  // namespace opfuse
