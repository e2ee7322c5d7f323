// Backtracking in continuation style. `chain(p, end, v, k)` asks whether elements [0, end) of p end in value v and
// calls k with the value that feeds the first of them.
#include "match/attempt.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "match/qdq.hpp"

namespace opfuse {
namespace {

bool is_value(const Pattern& p) {
  const ElementKind kind = p.chain().front()->kind;
  return p.chain().size() == 1 &&
         (kind == ElementKind::any || kind == ElementKind::tensor || kind == ElementKind::constant);
}

bool has_choice(const Node& node) {
  return is_commutative(operator_name(node)) && node.inputs[0] && node.inputs[1] && node.inputs[0]->producer &&
         node.inputs[1]->producer;
}

}  // namespace

bool Attempt::chain(const Pattern& p, size_t end, Value* v, const Next& k) {
  if (end == 0) return k(v);
  const Element& e = *p.chain()[end - 1];
  const Mark before = mark();
  auto rest = [&](Value* in) { return chain(p, end - 1, in, k); };
  bool ok = false;
  switch (e.kind) {
    case ElementKind::op:
      ok = e.join ? join(p, end, e, v, k) : operation(e, v, rest);
      break;
    case ElementKind::any:
    case ElementKind::tensor:
    case ElementKind::constant:
      ok = value(e, v) && rest(v);
      break;
    case ElementKind::maybe: {
      const Pattern& part = e.parts.front();
      const auto earlier = std::make_pair(best_score, best);
      ok = v && chain(part, part.chain().size(), v, rest);
      if (ok) break;
      undo(before);
      if (v && is_value(part)) break;  // an operand that is there must fit
      // That an optional element is absent explains nothing; what the rest says does.
      if (best_score <= 2 * nodes.size() + 1) std::tie(best_score, best) = earlier;
      trace.push_back({&e, nullptr});
      ok = rest(v);
      break;
    }
    case ElementKind::repeat:
      ok = repeated(e, 0, v, rest, &p == &pattern ? end : 0);
      break;
    case ElementKind::one_of:
      for (const Pattern& part : e.parts) {
        ok = chain(part, part.chain().size(), v, rest);
        if (ok) break;
        undo(before);
      }
      break;
    case ElementKind::pass_through:
      ok = rest(v);
      break;
    case ElementKind::fork:
      fail(&e, nullptr, "bad_pattern", [] { return Decline{"bad_pattern", "a fork must be followed by a join", {}}; });
      break;
  }
  if (!ok) undo(before);
  return ok;
}

/// `outer`: its place in the outermost chain, where what follows is always the same; 0: within another element.
bool Attempt::repeated(const Element& e, int done, Value* v, const Next& k, size_t outer) {
  const std::tuple state(outer, done, v, nodes.size());
  if (outer > 0 && refused.contains(state)) return false;
  const size_t before_dependent = dependent;
  const Pattern& part = e.parts.front();
  const Mark before = mark();
  const Next again = [&](Value* in) { return repeated(e, done + 1, in, k, outer); };
  if (done < e.hi && chain(part, part.chain().size(), v, again)) return true;
  undo(before);
  if (done >= e.lo && k(v)) return true;
  if (outer > 0 && dependent == before_dependent) refused.insert(state);
  return false;
}

/// The element's operator makes `v`, or a Q/DQ pair stands between.
bool Attempt::operation(const Element& e, Value* v, const Next& k) {
  if (direct(e, v, k)) return true;
  const auto pair = nodes.empty() ? std::nullopt : qdq_pair(v);
  if (!pair) return false;
  const Mark before = mark();
  for (Node* node : {pair->dequantize, pair->quantize}) {
    trace.push_back({nullptr, node});
    nodes.push_back({node, &pair_element()});
  }
  choices.emplace_back(pair->dequantize, nullptr);
  if (direct(e, pair->quantize->input(0), k)) return true;
  undo(before);
  return false;
}

bool Attempt::direct(const Element& e, Value* v, const Next& k) {
  const Mark before = mark();
  Node* node = nullptr;
  if (!accept(e, v, node) || !fits_operands(e, *node) || !take(e, node)) return undo(before), false;
  for (size_t data : data_operands(*node, e.sides.size())) {
    const Mark inside = mark();
    if (!e.sides.empty() && node->inputs.size() == 2 && has_choice(*node))
      choices.emplace_back(node, node->inputs[data]);
    if (sides(e, *node, data, 0, k)) return true;
    undo(inside);
  }
  undo(before);
  return false;
}

// Operands of `node` that may be the data operand, the preferred one first: where operands commute, the deeper one
// (longest path from the inputs), then the one computed later.
std::vector<size_t> Attempt::data_operands(const Node& node, size_t sides) {
  std::vector<size_t> order;
  if (!is_commutative(operator_name(node)) || node.inputs.size() != 2 || sides > 1) return {0};
  if (node.inputs[0] == node.inputs[1]) return {0};
  order = {0, 1};
  auto rank = [&](size_t i) {
    const Node* p = node.inputs[i] ? node.inputs[i]->producer : nullptr;
    return p ? std::pair(matcher.depth(p) + 1, matcher.position(p) + 1) : std::pair<size_t, size_t>(0, 0);
  };
  if (rank(1) > rank(0)) order = {1, 0};
  return order;
}

// Data operand first, so that the explanation follows the main path; then the sides in operand order.
bool Attempt::sides(const Element& e, Node& node, size_t data, size_t done, const Next& k) {
  if (done == e.sides.size()) return k(node.input(data));
  const Pattern& side = e.sides[done];
  size_t operand = done < data ? done : done + 1;
  Value* v = node.input(operand);
  return chain(side, side.chain().size(), v, [&](Value*) { return sides(e, node, data, done + 1, k); });
}

bool Attempt::join(const Pattern& p, size_t end, const Element& e, Value* v, const Next& k) {
  if (end < 2 || p.chain()[end - 2]->kind != ElementKind::fork)
    return fail(&e, nullptr, "bad_pattern", [] { return Decline{"bad_pattern", "a join must follow a fork", {}}; });
  const Element& fork = *p.chain()[end - 2];
  Node* node = nullptr;
  if (!accept(e, v, node)) return false;
  if (node->inputs.size() != fork.parts.size())
    return fail(&e, node, "operand_count", [&] {
      return Decline{
          "operand_count", fmt::format("expected {} operands, found {}", fork.parts.size(), node->inputs.size()), {}};
    });
  if (!take(e, node)) return false;
  std::vector<size_t> order(fork.parts.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  do {
    const Mark inside = mark();
    if (branches(fork, *node, order, 0, nullptr, [&](Value* start) { return chain(p, end - 2, start, k); }))
      return true;
    undo(inside);
  } while (is_commutative(operator_name(*node)) && std::next_permutation(order.begin(), order.end()));
  return false;
}

bool Attempt::branches(const Element& fork, Node& node, const std::vector<size_t>& order, size_t done, Value* start,
                       const Next& k) {
  if (done == order.size()) return k(start);
  const Pattern& branch = fork.parts[done];
  return chain(branch, branch.chain().size(), node.inputs[order[done]], [&](Value* in) {
    if (done > 0 && in != start)
      return fail(&fork, &node, "different_sources", [&] {
        return Decline{
            "different_sources",
            fmt::format("branches must start at one value; they start at {} and {}", describe(start), describe(in)),
            {}};
      });
    return branches(fork, node, order, done + 1, in, k);
  });
}

}  // namespace opfuse
