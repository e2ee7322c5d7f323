// The eight activations of the catalogue, under the operators and composites that spell them.
#pragma once

#include "match/pattern.hpp"

namespace opfuse {

/// relu, relu6 (clip 0..6), leaky_relu, elu, gelu, silu, hard_swish, hard_sigmoid (1/6, 1/2): as a pattern element.
Pattern activation(std::string binding = {});

/// The catalogue's name of the activation ("relu6" for clip 0..6), empty when the node is none of the eight.
std::string_view activation_name(const Node& node);

/// Limits of a clip when both are constant or absent (then infinite).
struct ClipLimits {
  double low, high;
};
std::optional<ClipLimits> clip_limits(const Node& clip);

NodePredicate clip_between(double low, double high);
/// hard_sigmoid with alpha 1/6 and beta 1/2 (PyTorch's; ONNX's default of 0.2 is another function).
NodePredicate sixth_and_half();

}  // namespace opfuse
