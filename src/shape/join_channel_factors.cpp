// Factors of channels: the product of a map and a factor per channel joins the 1x1 convolution that alone reads it.
//
//     t -- M: * g[n,c,1,1] -- C: convolution -- y
//     t, g -- [M, C] -- y
//
// The kernel multiplies its weights by the factors instead of the map, which is then neither stored nor read again.
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "ops/mul.hpp"
#include "shape/join.hpp"
#include "shape/narrow_weights.hpp"

namespace opfuse {
namespace {

/// A lone product, as a node or as a group.
bool is_product(const Node& node) {
  if (!node.body) return is_a<Mul>(node);
  return node.op == fused_op() && node.body->nodes().size() == 1 && is_a<Mul>(*node.body->nodes().front());
}

/// One factor for each channel of each image.
bool is_gated(const Node& product) {
  if (product.inputs.size() != 2 || !product.output()->type.shape.ranked) return false;
  const Shape& y = product.output()->type.shape;
  if (y.rank() != 4) return false;
  const auto is_gate = [&](const Value* v) {
    const Shape& g = v->type.shape;
    return g.ranked && g.rank() == 4 && g[1] == y[1] && g[2] == Dim(1) && g[3] == Dim(1) && !v->is_constant();
  };
  const Value *a = product.input(0), *b = product.input(1);
  return (is_gate(b) && a->type.shape == y) || (is_gate(a) && b->type.shape == y);
}

bool is_pointwise(const Node& conv) {
  const Shape& w = conv.input(1)->type.shape;
  return conv.as<Conv>().group == 1 && w.rank() == 4 && w[2] == Dim(1) && w[3] == Dim(1);
}

std::optional<JoinPair> find(Node& reader) {
  const Node* conv = leading_convolution(reader);
  if (!conv || !is_pointwise(*conv)) return std::nullopt;
  const Value* data = outside_of(reader, conv->input(0));
  Node* product = data ? data->producer : nullptr;
  return product && is_product(*product) && is_gated(*product) ? std::optional(JoinPair{product, &reader})
                                                               : std::nullopt;
}

/// Packed weights of 16 bits take no factor: it would multiply the data, for every block of outputs again.
std::optional<Decline> narrow_weights_unwanted(const JoinPair& pair, const ShapeContext& context) {
  const Value* weights = outside_of(*pair.second, leading_convolution(*pair.second)->input(1));
  if (!weights || !lies_in_16_bits(*pair.second, *weights, context)) return std::nullopt;
  return Decline{"no_kernel", "weights of 16 bits take no factor", {}};
}

}  // namespace

ShapingPass join_channel_factors() {
  return joining({.name = "join-channel-factors",
                  .summary = "Factors of channels become factors of the next convolution's weights.",
                  .find = find,
                  .unfit = read_elsewhere,
                  .unwanted = narrow_weights_unwanted,
                  .first_name = "mul"});
}

}  // namespace opfuse
