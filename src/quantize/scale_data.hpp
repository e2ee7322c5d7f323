// Factors between data and the weights that multiply them, so that weights of loud channels are rounded more finely:
//
//     x -- MatMul w      ->      x / t -- MatMul t w          t[c] = (mean square of x[c])^(alpha / 2)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quantize/block_codes.hpp"
#include "quantize/code_weights.hpp"

namespace opfuse::quantization {

/// A matrix product, its constant weights, and along which of their axes it adds up.
struct DataReader {
  Node* product;
  Value* weights;
  size_t depth_axis;
};

struct DataScaler {
  Graph& graph;
  const DataPowers& powers;
  BlockOptions codes;  ///< what weights become: factors are chosen by the noise that these leave
};

struct ScaledData {
  std::vector<double> powers;  ///< of the data that the product reads now
  double alpha = 0, gain = 0;  ///< 0: nothing was changed
  bool folded = false;
};

/// `readers` read one tensor. Alpha is the one of least noise in their results; a gain that is not worth a Mul (or a
/// change of constants) leaves the data as they are. Nothing for products of data without powers.
std::map<const Node*, ScaledData> scale_data(const DataScaler& scaler, const std::vector<DataReader>& readers);

}  // namespace opfuse::quantization
