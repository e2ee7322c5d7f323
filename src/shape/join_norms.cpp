// Norms: a depthwise convolution and the LayerNorm over its channels.
//
//     x -- A: depthwise -- t -- B: [transpose, LayerNorm] -- y        B alone reads t
//     x -- [A, B] -- y
//
// The kernel has all channels of a few pixels, so the rows of the norm are whole and t is never stored
// (cuda/window_rows_view.hpp). On CPUs t stays in a cache, and a kernel of both would lose the first one's blocks of
// channels.
#include <algorithm>

#include "match/movement.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "ops/norm.hpp"
#include "shape/join.hpp"

namespace opfuse {
namespace {

bool is_norm(const Node& node) {
  if (node.op != fused_op()) return is_a<LayerNorm>(node);
  const auto& nodes = node.body->nodes();
  const auto norms = std::count_if(nodes.begin(), nodes.end(), [](const Node* n) { return is_a<LayerNorm>(*n); });
  return norms == 1 && std::all_of(nodes.begin(), nodes.end(),
                                   [](const Node* n) { return is_a<LayerNorm>(*n) || moves_elements(*n); });
}

std::optional<JoinPair> find(Node& a) {
  const Node* conv = a.outputs.size() == 1 ? leading_convolution(a) : nullptr;
  if (!conv || !is_depthwise(*conv)) return std::nullopt;
  for (const Use& use : a.output()->uses)
    if (is_norm(*use.node)) return JoinPair{&a, use.node};
  return std::nullopt;
}

}  // namespace

ShapingPass join_norms() {
  return joining({.name = "join-norms",
                  .summary = "A depthwise convolution and the LayerNorm of its channels become one launch.",
                  .find = find,
                  .unfit = read_elsewhere});
}

}  // namespace opfuse
