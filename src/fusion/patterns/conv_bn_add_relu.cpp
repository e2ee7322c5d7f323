//     x -- Conv -- [BatchNorm] --.
//                                 Add -- Activation -- y
//     residual -------------------
//
// The residual is read while the result is stored. It is a computed value of the same shape: a constant is a bias, a
// broadcast operand is not a skip connection. When both operands of the add are convolutions the deeper one (longest
// path from the inputs, then the later one) is fused and the other is the residual.
#include <fmt/format.h>

#include <algorithm>

#include "fusion/patterns.hpp"
#include "match/activation.hpp"

namespace opfuse {

static std::optional<Decline> residual_of_same_shape(const Match& m) {
  const Value *residual = m.value("residual"), *y = m.value("add");
  if (std::find(m.nodes.begin(), m.nodes.end(), residual->producer) != m.nodes.end())
    return Decline{"residual_inside", "the residual is a value of the group itself", {value_name(*residual)}};
  if (residual->type == y->type) return std::nullopt;
  return Decline{"residual_shape",
                 fmt::format("the residual is {}, the convolution's result {}", residual->type.text(), y->type.text()),
                 {value_name(*residual)}};
}

FusionPattern conv_bn_add_relu() {
  return {
      .name = "ConvBNAddReLU",
      .module = "FusedConvBNAddReLU",
      .doc = "Convolution, BatchNorm, residual addition and activation.",
      .topology = conv_block() >> op("add", "add").with(tensor("residual")) >> activation("act"),
      .where = {{"residual of the same shape", residual_of_same_shape}, one_float_dtype({"conv", "bn", "add", "act"})},
      .root = "conv",
      .points = {{"INPUT", "conv"}, {"RESIDUAL_INPUT", "residual"}}};
}

}  // namespace opfuse
