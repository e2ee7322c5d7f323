// One of two values, copied.
#include "base/fail.hpp"
#include "routine/rows.hpp"

namespace opfuse {

RoutineResult choose_routine(Settings settings, RoutineOperands operands) {
  if (operands.size() < 3 || !operands[1] || !operands[2] || operands[0]->elements() != 1)
    throw fail(E::bad_file, "choose without a condition, or with one value");
  const Tensor& taken = operands[0]->integer(0) != 0 ? *operands[1] : *operands[2];
  RoutineResult found{{taken}, {}};
  for (const int64_t axis : settings) found.sizes.push_back(AxisSizes(taken.sizes(), axis).along);
  return found;
}

}  // namespace opfuse
