// Chains: a convolution and the depthwise one behind it, the map between them never more than a few rows.
//
//     x -- A: convolution -- t -- B: depthwise -- y        B alone reads t
//     x -- [A, B] -- y
//
// The kernel computes some channels of t, a few rows at a time, and B's rows from them (cpu/window/chain_view.hpp).
#include "ops/conv.hpp"
#include "shape/join.hpp"

namespace opfuse {
namespace {

/// The one convolution of a group with one result, where it starts with one.
const Node* convolution_of(const Node& group) {
  return group.outputs.size() == 1 ? leading_convolution(group) : nullptr;
}

/// The depthwise group that reads the convolution's result as its data.
std::optional<JoinPair> find(Node& a) {
  const Node* first = convolution_of(a);
  if (!first || is_depthwise(*first)) return std::nullopt;
  for (const Use& use : a.output()->uses) {
    const Node* conv = convolution_of(*use.node);
    if (conv && is_depthwise(*conv) && outside_of(*use.node, conv->input(0)) == a.output())
      return JoinPair{&a, use.node};
  }
  return std::nullopt;
}

}  // namespace

ShapingPass join_chains() {
  return joining({.name = "join-chains",
                  .summary = "A convolution and the depthwise one behind it become one launch.",
                  .find = find,
                  .unfit = read_elsewhere});
}

}  // namespace opfuse
