// Layers drawn at random: odd maps, channels that are not multiples of 16, strides, dilations, groups, batch 1 to 4.
#pragma once

#include <string>

#include "interp/random_inputs.hpp"
#include "ir/graph.hpp"

namespace opfuse::cli {

struct DrawnLayer {
  std::string kind;   ///< "conv", "depthwise", "gemm"
  std::string title;  ///< "conv 2x37x19x23 -> 65, 3x3 s2 d1 g1"
  Graph graph;
  std::string node;                 ///< source name of the layer itself in the graph
  double flop = 0;                  ///< of multiply-adds on elements inside the input: padding is not work
  double bytes = 0;                 ///< operand elements that the layer needs, each once: what must move
  int64_t outputs = 1, groups = 1;  ///< channels; columns of a product
};

/// Where a convolution stands: between two poolings, so that its operands have the layouts they would have inside a
/// network, or alone, with the caller's dense arrays at both ends. Products are alone either way: matrices are dense.
enum class Surroundings { network, none };

/// The next layer; the same generator state gives the same layer.
DrawnLayer draw_layer(Random& random, Surroundings surroundings);

}  // namespace opfuse::cli
