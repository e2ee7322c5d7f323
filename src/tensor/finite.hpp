// Whether a tensor holds numbers alone: no NaN, no infinity.
#pragma once

#include "tensor/tensor.hpp"

namespace opfuse {

bool all_finite(const Tensor& tensor);

}  // namespace opfuse
