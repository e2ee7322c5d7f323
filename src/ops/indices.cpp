// An index i >= 0 needs i + 1 elements, an index i < 0 (counted from the end) needs -i.
#include "ops/indices.hpp"

#include <algorithm>

#include "tensor/dim_rule.hpp"

namespace opfuse {

void assume_inside(const Inference& in, size_t i, const Dim& axis, int64_t first, int64_t stride) {
  const Tensor* indices = in.constant(i);
  if (indices == nullptr || axis.is_constant()) return;
  int64_t needed = 0;
  for (int64_t at = first; at < indices->elements(); at += stride) {
    const int64_t index = indices->integer(at);
    needed = std::max(needed, index < 0            ? (index == INT64_MIN ? INT64_MAX : -index)
                              : index == INT64_MAX ? index
                                                   : index + 1);
  }
  assume(DimRule::at_least, axis, needed, "constant indices lie inside the axis");
}

}  // namespace opfuse
