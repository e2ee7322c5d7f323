// Concats that grow: one that repeats the operands of another reads that one's result.
//     c = concat(a, b)   d = concat(a, b, e)   =   c = concat(a, b)   d = concat(c, e)
// A program then makes c a part of d, and d a part of what repeats it: the features of a dense block lie in one buffer,
// each of them stored once, where its kernel stores it. Repeated in any place, not only first (concat(e, a, b)).
#include <algorithm>
#include <map>

#include "ir/outline.hpp"
#include "ops/concat.hpp"
#include "passes/passes.hpp"

namespace opfuse {

namespace {

using Operands = std::vector<Value*>;

/// A concat as it was when the pass came to it.
struct Whole {
  Operands operands;
  int64_t axis = 0;  ///< from the front
  Value* result = nullptr;
};

int64_t axis_of(const Node& concat) {
  const int64_t axis = concat.as<Concat>().axis;
  return axis < 0 ? axis + static_cast<int64_t>(concat.output()->type.shape.rank()) : axis;
}

/// The longest of `earlier` that lies within `operands`; null: none does.
const Whole* longest_within(const Operands& operands, int64_t axis, const std::vector<const Whole*>& earlier,
                            Operands::const_iterator at) {
  const Whole* best = nullptr;
  const auto left = static_cast<size_t>(operands.end() - at);
  for (const Whole* whole : earlier) {
    const size_t size = whole->operands.size();
    if (whole->axis != axis || size > left || size == operands.size() || (best && size <= best->operands.size()))
      continue;
    if (std::equal(whole->operands.begin(), whole->operands.end(), at)) best = whole;
  }
  return best;
}

Operands nested(const Operands& operands, int64_t axis, const std::map<int, std::vector<const Whole*>>& by_first) {
  Operands result;
  for (auto at = operands.begin(); at != operands.end();) {
    const auto found = *at == nullptr ? by_first.end() : by_first.find((*at)->id);
    const Whole* whole = found == by_first.end() ? nullptr : longest_within(operands, axis, found->second, at);
    result.push_back(whole ? whole->result : *at);
    at += whole ? static_cast<std::ptrdiff_t>(whole->operands.size()) : 1;
  }
  return result;
}

bool run(Graph& graph, PassContext&) {
  std::vector<std::unique_ptr<Whole>> wholes;
  std::map<int, std::vector<const Whole*>> by_first;  // id of the first operand -> those that begin with it
  bool changed = false;
  const std::vector<Node*> nodes = graph.nodes();
  for (Node* node : nodes) {
    if (!node->is("concat") || node->inputs.size() < 2 || !node->output()->type.shape.ranked) continue;
    const Whole whole{node->inputs, axis_of(*node), node->output()};
    const Operands operands = nested(whole.operands, whole.axis, by_first);
    Whole* kept = wholes.emplace_back(std::make_unique<Whole>(whole)).get();
    if (operands.size() != whole.operands.size()) {
      Node* added = graph.add_node(node->op, node->attrs_, operands, 1, node->sources, node);
      kept->result = added->output();
      take_over(graph, node->output(), added->output());
      graph.erase(node);
      changed = true;
    }
    if (kept->operands.front() != nullptr) by_first[kept->operands.front()->id].push_back(kept);
  }
  return changed;
}

}  // namespace

Pass nest_concats() {
  return {"nest-concats", "A Concat that repeats the operands of an earlier one reads that one's result.", run, {}};
}

}  // namespace opfuse
