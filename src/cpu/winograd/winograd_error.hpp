// How far Winograd's results are from exact ones, for the very weights of a layer, before it is compiled: a tile of
// drawn data is computed as the kernel does it (fp32, the same transforms) and in double.
#pragma once

#include "cpu/winograd/winograd.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {

struct WinogradError {
  double of_max = 0;       ///< largest error / largest result, normally distributed data
  double of_sum = 0;       ///< largest error / sum of |w||x|, over all kinds of data
  const char* worst = "";  ///< the kind of data that gave of_sum
};

/// A layer whose of_sum is above this is not computed that way.
inline constexpr double kWinogradErrorBound = 1e-4;

/// Kinds of data: normal, mean 1000 and deviation 1, alternating signs, one channel times 100. Deterministic.
WinogradError probe_winograd_error(const Tensor& filters, const WinogradTile& tile);

}  // namespace opfuse
