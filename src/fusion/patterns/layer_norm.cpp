//     x -- LayerNorm -- y
//
// The operator, which is one kernel, or the chain of primitives that was recomposed, which may be several. No Q/DQ
// points: statistics stay in floating point.
#include "fusion/patterns.hpp"

namespace opfuse {

FusionPattern layer_norm() {
  return {.name = "LayerNorm",
          .module = "FusedLayerNorm",
          .doc = "Layer normalisation with its scale and bias.",
          .topology = op("layer_norm", "norm"),
          .where = {one_float_dtype({"norm"})},
          .root = "norm",
          .points = {},
          .divisible = true};
}

}  // namespace opfuse
