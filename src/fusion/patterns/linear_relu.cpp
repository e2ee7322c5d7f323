//     x -- Linear -- Activation -- y
#include "fusion/patterns.hpp"
#include "match/activation.hpp"

namespace opfuse {

FusionPattern linear_relu() {
  return {.name = "LinearReLU",
          .module = "FusedLinearReLU",
          .doc = "Linear and one of the eight activations.",
          .topology = linear_block() >> activation("act"),
          .where = {one_float_dtype({"linear", "bias", "act"}), bias_along_last_axis()},
          .root = "linear",
          .points = {{"INPUT", "linear"}}};
}

}  // namespace opfuse
