// ShiftedWindowAttention: what Swin's exporters write around the attention of shifted windows becomes two modules.
//
//     x -- roll -- roll -- window_partition -- in-projection, attention, Linear -- window_reverse -- roll -- roll -- y
//     x -------- swin_window_partition ------- in-projection, attention, Linear -------- swin_window_reverse ------- y
//
// The attention between them keeps its own modules and Q/DQ points; the mask of the shifted windows is one of its
// masks. Preconditions: only the partition reads the rolled value and only the rolls read the reversed one; an
// attention stands between; the windows are equal; what is rolled back is what was rolled. Refused with the reason
// otherwise.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/outline.hpp"
#include "match/attention.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

constexpr const char* kPass = "convert-shifted-windows";
constexpr const char* kRule = "ShiftedWindowAttention";

Decline no(std::string code, std::string message) { return {std::move(code), std::move(message), {}}; }

bool is(const Node* node, std::string_view name) { return node && operator_name(*node) == name; }

/// How far a value is rolled along each axis, and the rolls, first one first.
struct Rolls {
  std::vector<Node*> nodes;
  std::map<size_t, int64_t> shifts;  ///< 0 <= shift < size

  void add(Node* roll) {
    for (const Node* inner : roll->body->nodes())
      if (const auto cut = inner->is("slice") ? slice_of_one_axis(*inner) : std::nullopt; cut && cut->start > 0)
        shifts[cut->axis] = (shifts[cut->axis] + cut->start) % cut->size;
    nodes.push_back(roll);
  }
};

Rolls rolls_before(const Graph& graph, Value* value) {
  Rolls rolls;
  for (Node* node = value->producer; is(node, "roll") && graph.read_count(node->output()) == 1;
       node = node->input(0)->producer)
    rolls.add(node);
  std::reverse(rolls.nodes.begin(), rolls.nodes.end());
  return rolls;
}

Rolls rolls_after(const Graph& graph, Value* value) {
  Rolls rolls;
  while (graph.read_count(value) == 1 && !value->uses.empty() && is(value->uses.front().node, "roll")) {
    rolls.add(value->uses.front().node);
    value = value->uses.front().node->output();
  }
  return rolls;
}

/// What a Linear reads; null when the node is none.
Value* linear_source(const Node& node) {
  if (node.is("add") && node.input(0)->is_constant()) return node.input(1);
  const bool linear = node.is("matmul") || node.is("gemm") || node.is("add");
  return linear && node.input(1)->is_constant() ? node.input(0) : nullptr;
}

struct Pair {
  Node *partition = nullptr, *attention = nullptr;
};

/// The partition behind a reversal, through a Linear, an attention and its projection.
Pair behind(Value* value) {
  Pair pair;
  while (value && value->producer) {
    Node* node = value->producer;
    if (is(node, "window_partition")) {
      pair.partition = node;
      return pair;
    }
    if (const auto parts = attention_parts(*node)) {
      if (pair.attention) return {};
      pair.attention = node;
      value = parts->q;
    } else if (is(node, kInProjection)) {
      value = node->input(0);
    } else if (Value* source = movement_source(value); source != value) {
      value = source;
    } else {
      value = linear_source(*node);
    }
  }
  return {};
}

/// Tokens down and across a window: dimensions 2 and 4 of the partition, 3 and 4 of the reversal.
std::pair<Dim, Dim> window_of(const Node& node, size_t down, size_t across) {
  const Shape& apart = node.body->nodes().front()->output()->type.shape;
  return {apart[down], apart[across]};
}

std::optional<Decline> check(const Pair& pair, const Node& reverse, const Rolls& before, const Rolls& after) {
  if (!pair.partition || !pair.attention)
    return no("no_attention", "no attention of windows stands in front of " + describe(reverse));
  if (window_of(*pair.partition, 2, 4) != window_of(reverse, 3, 4))
    return no("window_mismatch",
              fmt::format("{} and {} have windows of different sizes", describe(*pair.partition), describe(reverse)));
  const Shape& x = pair.partition->input(0)->type.shape;
  std::map<size_t, int64_t> total = before.shifts;
  for (const auto& [axis, shift] : after.shifts) total[axis] += shift;
  for (const auto& [axis, shift] : total)
    if (shift % x[axis].value() != 0)
      return no("shift_mismatch",
                fmt::format("axis {} is rolled by {} and back by {}", axis,
                            before.shifts.contains(axis) ? before.shifts.at(axis) : 0,
                            after.shifts.contains(axis) ? x[axis].value() - after.shifts.at(axis) : 0));
  return std::nullopt;
}

}  // namespace

static bool run(Graph& graph, PassContext& context) {
  RewriteReport* const report = context.report;
  bool changed = false;
  std::vector<Node*> reversals;  // each is erased in its own turn at most, unlike the rolls
  for (Node* node : graph.nodes())
    if (is(node, "window_reverse")) reversals.push_back(node);
  for (Node* reverse : reversals) {
    const Rolls after = rolls_after(graph, reverse->output());
    const Pair pair = behind(reverse->input(0));
    const Rolls before = pair.partition ? rolls_before(graph, pair.partition->input(0)) : Rolls{};
    if (before.nodes.empty() && after.nodes.empty()) continue;  // windows that are not shifted
    const std::string where = reverse->name();
    if (auto decline = check(pair, *reverse, before, after)) {
      if (report) report->declined(kPass, kRule, where, std::move(*decline));
      continue;
    }
    std::vector<Node*> first = before.nodes, second{reverse};
    first.push_back(pair.partition);
    second.insert(second.end(), after.nodes.begin(), after.nodes.end());
    outline(graph, first, {composite_op(), "swin_window_partition", {}});
    outline(graph, second, {composite_op(), "swin_window_reverse", {}});
    std::vector<std::string> shifts;
    for (const auto& [axis, shift] : before.shifts) shifts.push_back(fmt::format("axis {} by {}", axis, shift));
    if (report) report->applied(kPass, kRule, where, fmt::format("windows shifted: {}", fmt::join(shifts, ", ")));
    changed = true;
  }
  return changed;
}

Pass convert_shifted_windows() {
  return {"convert-shifted-windows",
          "Rolls before and after the windows of an attention join their partition and reversal.",
          run,
          {}};
}

}  // namespace opfuse
