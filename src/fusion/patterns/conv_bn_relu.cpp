//     x -- Conv -- [BatchNorm] -- Activation -- y
//
// Stores the convolution result once, already activated.
#include "fusion/patterns.hpp"
#include "match/activation.hpp"

namespace opfuse {

FusionPattern conv_bn_relu() {
  return {.name = "ConvBNReLU",
          .module = "FusedConvBNReLU",
          .doc = "Convolution, BatchNorm and one of the eight activations.",
          .topology = conv_block() >> activation("act"),
          .where = {one_float_dtype({"conv", "bn", "act"})},
          .root = "conv",
          .points = {{"INPUT", "conv"}}};
}

}  // namespace opfuse
