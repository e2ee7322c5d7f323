// Products with constant weights, also within the composite of an attention's projections.
#pragma once

#include <optional>
#include <vector>

#include "base/decline.hpp"
#include "ir/graph.hpp"

namespace opfuse::quantization {

/// A Linear's features.
struct LinearSize {
  int64_t in = 0, out = 0;
};

/// A convolution or matrix product, or the composite of the projections in front of an attention.
bool holds_product(const Node& node);

/// Of each Linear in `node`; none for convolutions.
std::vector<LinearSize> linear_sizes(const Node& node);

/// Why the weights of a product in `node` cannot become codes by output channel; nothing when they can, or are codes.
std::optional<Decline> unfit_weights(const Node& node);

/// The axis of a product's weights that is its output channels.
size_t output_axis(const Node& product);

}  // namespace opfuse::quantization
