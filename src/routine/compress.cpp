// Slices, or elements, where a condition is true; a short condition leaves out what lies behind its end.
#include "base/fail.hpp"
#include "routine/rows.hpp"

namespace opfuse {

RoutineResult compress_routine(Settings settings, RoutineOperands operands) {
  const Tensor& x = *operands[0];
  if (operands.size() < 2 || !operands[1]) throw fail(E::bad_file, "compress without a condition");
  const Tensor& condition = *operands[1];
  const int64_t most = settings.empty() ? x.elements() : AxisSizes(x.sizes(), settings[0]).along;
  if (condition.elements() > most)
    throw fail(E::shape_mismatch, "{} conditions for {} places", condition.elements(), most);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < condition.elements(); ++i)
    if (condition.integer(i) != 0) places.push_back(i);
  return {{picked(x, settings, places)}, {static_cast<int64_t>(places.size())}};
}

}  // namespace opfuse
