// reshape(x, <computed from shapes>) = reshape(x, constant)
// when every dimension of the result is a number, the dimension of x at the same place (written 0), or the
// only other one (written -1). Shape -> Gather -> Concat chains of models with dynamic sizes end here.
#include "ir/dim_values.hpp"
#include "ops/registry.hpp"
#include "ops/reshape.hpp"
#include "passes/passes.hpp"

namespace opfuse {

namespace {

/// The constant target, or nothing when two dimensions would need -1 or a 0 would be ambiguous.
std::optional<std::vector<int64_t>> target_of(const Shape& x, const Shape& y) {
  std::vector<int64_t> target;
  bool rest = false;
  for (size_t i = 0; i < y.rank(); ++i) {
    if (y[i].is_constant()) {
      if (y[i].value() == 0) return std::nullopt;
      target.push_back(y[i].value());
    } else if (i < x.rank() && x[i] == y[i]) {
      target.push_back(0);
    } else if (!rest) {
      rest = true;
      target.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  return target;
}

bool run(Graph& graph, PassContext&) {
  bool changed = false;
  DimEvaluator evaluator;
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    if (!node->is("reshape") || node->input(1)->is_constant() || node->as<Reshape>().allowzero) continue;
    const Shape &x = node->input(0)->type.shape, &y = node->output()->type.shape;
    if (!x.ranked || !y.ranked || !evaluator.of(*node->input(1))) continue;
    const auto target = target_of(x, y);
    if (!target) continue;
    graph.set_input(node, 1, graph.add_constant(Tensor::from_i64(*target)));
    changed = true;
  }
  return changed;
}

}  // namespace

Pass fix_reshape_targets() {
  return {"fix-reshape-targets", "Gives Reshape a constant target where its shape is known.", run, {}};
}

}  // namespace opfuse
