// What the kinds of reductions mean.
#pragma once

#include "region/region.hpp"

namespace opfuse {

/// The operation that takes one more value in.
ExprOp combiner(ReduceKind kind);

/// The value of a reduction of nothing.
ScalarValue identity_of(ReduceKind kind, DType dtype);

}  // namespace opfuse
