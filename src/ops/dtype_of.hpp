// The element type of a value in each domain, for laws that depend on types (never on values).
#pragma once

#include "expr/domain.hpp"

namespace opfuse {

inline DType dtype_of(double) { return DType::f64; }
inline DType dtype_of(const Scalar& x) { return x.v.dtype; }
inline DType dtype_of(const Expr& x) { return x.dtype(); }

}  // namespace opfuse
