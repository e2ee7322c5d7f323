//     x -- Gemm -- y          x -- MatMul -- [Add bias] -- y          weights constant
#include "fusion/patterns.hpp"

namespace opfuse {

FusionPattern linear() {
  return {.name = "Linear",
          .module = "FusedLinear",
          .doc = "Matrix product with constant weights, and its bias.",
          .topology = linear_block(),
          .where = {one_float_dtype({"linear", "bias"}), bias_along_last_axis()},
          .root = "linear",
          .points = {{"INPUT", "linear"}}};
}

}  // namespace opfuse
