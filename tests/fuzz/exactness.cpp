// Multiples of 2^-grid below 2^q need grid + q bits.
#include "fuzz/exactness.hpp"

#include <algorithm>
#include <cmath>

namespace opfuse::fuzz {

int bits_needed(const Tensor& data) {
  constexpr int kFinest = 20, kNone = 99;
  double high = 0;
  int grid = 0;
  for (int64_t i = 0; i < data.elements(); ++i) {
    const double x = std::abs(data.real(i));
    high = std::max(high, x);
    while (grid <= kFinest && std::ldexp(x, grid) != std::floor(std::ldexp(x, grid))) ++grid;
  }
  return grid > kFinest || !std::isfinite(high) ? kNone : grid + (high > 1 ? std::ilogb(high) + 1 : 0);
}

int exact_bits(DType dtype) { return dtype == DType::f16 ? 9 : dtype == DType::bf16 ? 6 : 20; }

}  // namespace opfuse::fuzz
