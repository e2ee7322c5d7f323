// A float model whose matrix products have weights of codes: only weights lose. No samples are needed; where there are
// some, what weights multiply says which of their errors count.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/decline.hpp"
#include "base/step_progress.hpp"
#include "ir/graph.hpp"

namespace opfuse::quantization {

/// Least K N / (K + N) of weights K x N that become codes, unless told otherwise: 64 x 64.
inline constexpr int64_t kLeastCodedWeights = 32;

/// Mean squares of what matrix products read, by channel of their last axis; by name of the tensor.
using DataPowers = std::map<std::string, std::vector<double>>;

struct CodeWeightsOptions {
  DType type = DType::i8;               ///< or i4
  int64_t block = 0;                    ///< elements of K that share a scale, a multiple of 8; 0: a scale per column
  std::vector<std::string> skip, only;  ///< products, by node or operator
  int64_t min_linear = kLeastCodedWeights;
  const DataPowers* powers = nullptr;  ///< of data (data_powers.hpp); null: all errors count alike
  int threads = 0;
  StepProgress progress;
};

struct CodedProduct {
  std::string node;
  int64_t depth = 0, columns = 0;
  double sqnr = 0;                           ///< of the weights, dB; infinite: exact
  int64_t clipped = 0;                       ///< weights beyond the largest code
  size_t bytes_before = 0, bytes_after = 0;  ///< of products that share weights the first has all
  double alpha = 0;                          ///< channels of its data are divided by their power^(alpha / 2)
  double gain = 0;                           ///< dB of noise to expect in its result, by that
  bool folded = false;                       ///< into what makes its data; else a Mul divides
};

struct LeftProduct {
  std::string node;
  Decline why;
};

struct CodedModel {
  Graph graph;
  Graph reference;  ///< the model as it was
  std::vector<CodedProduct> products;
  std::vector<LeftProduct> left;
  size_t bytes_before = 0, bytes_after = 0;  ///< of constants
};

/// "int8-weights" is i8, "int4-weights" i4; E::bad_option.
DType parse_coded_weights(const std::string& text);
/// Unless told otherwise: 32 of i4, 0 of i8.
int64_t default_block(DType type);

/// DequantizeLinear in front of each MatMul and Gemm with constant weights (block_codes.hpp). E::bad_option when no
/// weights become codes or the block is none, E::unknown_name for names in `skip` and `only`.
CodedModel code_weights(const Graph& model, const CodeWeightsOptions& options);

}  // namespace opfuse::quantization
