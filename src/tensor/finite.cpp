#include "tensor/finite.hpp"

#include <algorithm>
#include <cmath>

namespace opfuse {

bool all_finite(const Tensor& tensor) {
  if (!is_float(tensor.dtype())) return true;
  if (tensor.dtype() == DType::f32) {
    const auto values = tensor.view<float>();
    return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
  }
  for (int64_t i = 0; i < tensor.elements(); ++i)
    if (!std::isfinite(tensor.real(i))) return false;
  return true;
}

}  // namespace opfuse
