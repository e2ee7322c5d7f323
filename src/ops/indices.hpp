// Constant indices into open axes.
#pragma once

#include <cstddef>

#include "ir/op_info.hpp"

namespace opfuse {

/// Assumes of an open axis that the constant indices of operand `i` lie inside it: every `stride`-th of them from
/// `first` on. Of an axis whose extent is known nothing is said.
void assume_inside(const Inference& in, size_t i, const Dim& axis, int64_t first = 0, int64_t stride = 1);

}  // namespace opfuse
