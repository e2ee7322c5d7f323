// TensorRT's threshold of least divergence.
#pragma once

#include "quantize/tensor_statistics.hpp"

namespace opfuse::quantization {

/// The |x| beyond which values saturate, for `levels` codes of magnitudes.
double entropy_threshold(const TensorStatistics& statistics, int levels);

}  // namespace opfuse::quantization
