// Operands of launches that run again and again, one step of a sequence after the other.
#pragma once

namespace opfuse {

/// How a parameter of a loop's launch follows the steps: it is a slice of its operand's first axis.
struct StepOperand {
  bool moves = false;   ///< the slice of the step; otherwise it stays
  bool before = false;  ///< the slice of the step before, in the first step parameter `first`
  int first = -1;
  bool operator==(const StepOperand&) const = default;
};

}  // namespace opfuse
