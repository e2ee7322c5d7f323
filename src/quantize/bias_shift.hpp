// What codes of weights shift a product's results by on average.
#pragma once

#include <vector>

#include "ir/graph.hpp"
#include "quantize/tensor_statistics.hpp"
#include "quantize/weight_codes.hpp"

namespace opfuse::quantization {

/// By output channel: the mean of (codes - weights) * data, with the means of the data's channels.
std::vector<double> bias_shift(const Node& product, const Tensor& weights, const WeightCodes& codes, size_t axis,
                               const TensorStatistics& data);

}  // namespace opfuse::quantization
