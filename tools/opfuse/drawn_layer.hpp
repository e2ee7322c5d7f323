// Layers drawn at random: odd maps, channels that are no multiples of 16, strides, dilations, groups, batch 1 to 4.
#pragma once

#include <string>

#include "interp/random_inputs.hpp"
#include "ir/graph.hpp"

namespace opfuse::cli {

struct DrawnLayer {
  std::string kind;   ///< "conv", "depthwise", "gemm"
  std::string title;  ///< "conv 2x37x19x23 -> 65, 3x3 s2 d1 g1"
  Graph graph;
};

/// The next layer; the same generator state gives the same layer.
DrawnLayer draw_layer(Random& random);

}  // namespace opfuse::cli
