// Equalisation of channels: what a channel's codes lose by the range of others goes into the weights that read it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/placement.hpp"
#include "quantize/tensor_statistics.hpp"

namespace opfuse::quantization {

struct EqualizeChoice {
  bool on = false;
  std::optional<double> alpha;  ///< for all tensors; nothing: by least expected noise of each
  std::string text() const;
};
/// "auto", "off", or an alpha in [0, 1]. E::bad_option.
EqualizeChoice parse_equalize(std::string_view text);

struct EqualizedTensor {
  std::string tensor;
  double alpha = 0;
  bool folded = false;            ///< into what makes it; else a Mul stands behind that
  double gain = 0;                ///< dB of expected noise at the products that read it
  size_t index = 0;               ///< among the placement's tensors
  std::vector<double> inverse{};  ///< by channel, what its data were multiplied with
};

/// `ranges`: of the placement's tensors, with channels; they become those of the new tensors. Tensors that anything but
/// products with constant weights reads behind the pair stay, also those that share scales (`fixed`, by index) and
/// graph inputs. `least_of_mul`: dB from which a Mul is made where factors do not fold; nothing: none is.
std::vector<EqualizedTensor> equalize(Graph& graph, Placement& placement, std::vector<TensorStatistics>& ranges,
                                      const std::vector<size_t>& fixed, const EqualizeChoice& choice,
                                      std::optional<double> least_of_mul);

}  // namespace opfuse::quantization
