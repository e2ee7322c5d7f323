// Launches of a program that run again and again: the body of a loop.
//
//     for part or step:
//       launch first .. first + launches - 1      with pointers to that part, to that step's slice
//
// Launch::steps says of each operand whether it follows: what is cut, what is put together, a slice of a sequence. It
// is the box of the first part or step (Buffer::view_of), and the way to the next is the stride of its first axis. What
// only a body of parts touches lies in one place for all of them. A state of a body of steps is the slice that a launch
// stores, and is read one step later (StepOperand::before).
#pragma once

#include "program/program.hpp"

namespace opfuse {

/// The body that a launch is in, or null.
const Body* body_of(const Program& program, size_t launch);

/// A batch of constant size, or steps: it runs as often whatever the run is given.
bool always_runs(const Body& body);

/// Bytes from one part or step of a buffer that moves to the next, negative backwards.
Dim moved_bytes(const Program& program, const Body& body, int buffer);

}  // namespace opfuse
