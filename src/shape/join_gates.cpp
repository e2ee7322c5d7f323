// Gates: the two products of a gated MLP, act(x A) * (x B), as one product of two sums whose epilogue combines them.
//
//     x --+-- A: Linear, activation -- g        B alone reads g
//         '-- B: Linear, * g ---------- y
//
//     x -- [A, B] -- y                          g is never stored
#include "ops/gemm.hpp"
#include "shape/join.hpp"

namespace opfuse {
namespace {

/// What the one Linear of a group multiplies with constant weights; null for other groups.
const Value* operand_of_linear(const Node& group) {
  if (group.op != fused_op()) return nullptr;
  const auto seen = [&](const Value* inner) {
    const Value* outer = outside_of(group, inner);
    return outer ? outer : inner;  // constants of the body
  };
  const Value* operand = nullptr;
  for (const Node* inner : group.body->nodes()) {
    if (!is_matrix_product(*inner)) continue;
    if (operand || !seen(inner->input(1))->is_constant()) return nullptr;
    operand = seen(inner->input(0));
  }
  return operand;
}

/// The group that reads the result of `a` behind a Linear of the same value that `a` is a Linear of.
std::optional<JoinPair> find(Node& a) {
  const Value* x = a.outputs.size() == 1 ? operand_of_linear(a) : nullptr;
  if (!x) return std::nullopt;
  for (const Use& use : a.output()->uses)
    if (use.node != &a && operand_of_linear(*use.node) == x) return JoinPair{&a, use.node};
  return std::nullopt;
}

}  // namespace

ShapingPass join_gates() {
  return joining({.name = "join-gates",
                  .summary = "The two products of a gated MLP become one product of two sums.",
                  .find = find,
                  .unfit = read_elsewhere});
}

}  // namespace opfuse
