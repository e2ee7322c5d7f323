//     x -- Conv -- [BatchNorm] -- y
//
// The convolution as a module of its own: a downsample branch, or a classifier that became a 1x1 convolution. A bare
// convolution matches too; BatchNorm stays in the body and folds when kernels are made.
#include "fusion/patterns.hpp"

namespace opfuse {

FusionPattern conv_bn() {
  return {.name = "ConvBN",
          .module = "FusedConvBN",
          .doc = "Convolution with its BatchNorm.",
          .topology = conv_block(),
          .where = {one_float_dtype({"conv", "bn"})},
          .root = "conv",
          .points = {{"INPUT", "conv"}}};
}

}  // namespace opfuse
