// The quantised graph: pairs on placed tensors, weights and biases as codes.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/placement.hpp"
#include "quantize/ranges.hpp"

namespace opfuse::quantization {

struct InsertOptions {
  bool bias_codes = true;
  bool added_bias_codes = false;  ///< of a bias that an Add behind a MatMul has, too
  bool per_channel = true;        ///< of weights; else one scale, a scalar
  bool window_sums = true;        ///< of weights, as in WeightOptions
  bool int16_pairs = false;       ///< the same
  /// Of the placement's tensors, with means of channels: biases are corrected; null: they are not.
  const std::vector<TensorStatistics>* means = nullptr;
};

/// What became of one product.
struct QuantizedProduct {
  std::string name, module, data;  ///< `data`: the tensor it reads
  double weight_sqnr = 0;          ///< dB
  int64_t dead_channels = 0;       ///< all weights 0
  int64_t moved_codes = 0;         ///< of weights, so that sums of windows keep
  int64_t cut_codes = 0;           ///< of weights, so that pairs fit
  double bias_shift = 0;           ///< largest correction, of the largest |bias| of the product
  std::string note;                ///< what could not be done
};

struct QuantizedGraph {
  Graph graph;
  std::vector<QuantizedProduct> products;
};

/// `base` is what prepare_products made with this placement; `codes` by placed tensor.
QuantizedGraph insert_pairs(const Graph& base, const Placement& placement, const std::vector<Codes>& codes,
                            const InsertOptions& options);

}  // namespace opfuse::quantization
