// The matcher: backtracking in continuation style. `chain(p, end, v, k)` asks whether elements [0, end) of p end in
// value v and calls k with the value that feeds the first of them. Every refusal is offered to `fail`, which keeps
// the one that came after the most matched nodes: the explanation of a near miss. Nearly all refusals are forgotten, so
// texts are written for those that are kept, and only for callers that ask for them.
#include "match/matcher.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <tuple>

#include "ir/outline.hpp"
#include "match/qdq.hpp"

namespace opfuse {

Node* Match::node(const std::string& binding) const {
  auto it = bindings.find(binding);
  return it == bindings.end() ? nullptr : it->second.node;
}
Value* Match::value(const std::string& binding) const {
  auto it = bindings.find(binding);
  return it == bindings.end() ? nullptr : it->second.value;
}

Matcher::Matcher(const Graph& graph) : graph_(graph) {
  int last = -1;
  for (const Node* node : graph.nodes()) last = std::max(last, node->id);
  position_.resize(static_cast<size_t>(last + 1));
  depth_.resize(static_cast<size_t>(last + 1));
  size_t index = 0;
  for (const Node* node : graph.nodes()) {
    size_t deep = 0;
    for (const Value* v : node->inputs)
      if (v && v->producer) deep = std::max(deep, depth(v->producer) + 1);
    position_[static_cast<size_t>(node->id)] = index++;
    depth_[static_cast<size_t>(node->id)] = deep;
  }
}

namespace {

/// kScalarTolerance, or what rounding a constant to its type may do to it where that is more.
double tolerance_of(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : kScalarTolerance;
}

using Next = std::function<bool(Value*)>;

struct Attempt {
  const Matcher& matcher;
  size_t& tried;
  const Pattern& pattern;
  Node* anchor;
  std::span<const MatchPredicate> where;
  Detail detail;

  struct Taken {
    Node* node;
    const Element* element;
  };
  /// What a line of the trace says: a Q/DQ pair without an element, an absent option without a node.
  struct Step {
    const Element* element;
    const Node* node;
  };
  /// The refusal kept so far.
  struct Furthest {
    size_t matched = 0;
    std::vector<Step> trace;
    const Element* element = nullptr;  ///< null: `condition`
    std::string condition;
    Node* at = nullptr;
    Decline decline;
  };
  std::vector<Taken> nodes;
  std::vector<std::pair<std::string, Bound>> bindings;
  std::vector<Step> trace;
  std::vector<std::pair<const Node*, const Value*>> choices;  ///< operands that were tried first
  std::shared_ptr<const Furthest> best;
  size_t best_score = 0;  // 0: nothing failed yet
  std::optional<Match> found;
  /// Repetitions of the outermost chain that were tried and refused for reasons that other nodes taken before would
  /// not change: element, repetition, value, nodes taken.
  std::set<std::tuple<size_t, int, const Value*, size_t>> refused;
  size_t dependent = 0;  ///< refusals so far that depend on the nodes taken

  // Undo everything after this point of the search.
  struct Mark {
    size_t nodes, bindings, trace, choices;
  };
  Mark mark() const { return {nodes.size(), bindings.size(), trace.size(), choices.size()}; }
  void undo(const Mark& m) {
    nodes.resize(m.nodes);
    bindings.resize(m.bindings);
    trace.resize(m.trace);
    choices.resize(m.choices);
  }

  /// Offers a refusal. `why` writes it as {code, message, evidence}; `extra`: nodes that fitted beyond those taken;
  /// `half`: the operator fitted, one of its conditions did not.
  template <class Why>
  bool fail(const Element* e, Node* at, const char* code, const Why& why, size_t extra = 0, bool half = false) {
    return keep(e, {}, at, extra, half, [&] { return detail == Detail::texts ? why() : Decline{code, {}, {}}; });
  }
  /// The same, of a condition that has said why.
  bool fail(const Element* e, std::string condition, Node* at, Decline decline, size_t extra = 0, bool half = false) {
    return keep(e, std::move(condition), at, extra, half, [&] { return std::move(decline); });
  }
  template <class Why>
  bool keep(const Element* e, std::string condition, Node* at, size_t extra, bool half, const Why& why) {
    const size_t matched = nodes.size() + extra, score = 2 * matched + (half ? 2 : 1);
    if (score <= best_score) return false;
    best_score = score;
    best = std::make_shared<const Furthest>(Furthest{matched, trace, e, std::move(condition), at, why()});
    return false;
  }

  bool bind(const Element& e, Node* node, Value* value) {
    if (e.binding.empty()) return true;
    for (const auto& [name, bound] : bindings) {
      if (name != e.binding) continue;
      if (bound.node == node && bound.value == value) return true;
      ++dependent;
      return fail(&e, node, "binding_mismatch", [&] {
        return Decline{"binding_mismatch",
                       fmt::format("\"{}\" must be the same in all places; it is {} and {}", e.binding,
                                   describe(bound.value), describe(value)),
                       {}};
      });
    }
    bindings.emplace_back(e.binding, Bound{node, value});
    return true;
  }

  bool chain(const Pattern& p, size_t end, Value* v, const Next& k) {
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
        fail(&e, nullptr, "bad_pattern", [] {
          return Decline{"bad_pattern", "a fork must be followed by a join", {}};
        });
        break;
    }
    if (!ok) undo(before);
    return ok;
  }

  static bool is_value(const Pattern& p) {
    const ElementKind kind = p.chain().front()->kind;
    return p.chain().size() == 1 &&
           (kind == ElementKind::any || kind == ElementKind::tensor || kind == ElementKind::constant);
  }

  /// `outer`: its place in the outermost chain, where what follows is always the same; 0: within another element.
  bool repeated(const Element& e, int done, Value* v, const Next& k, size_t outer) {
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

  bool value(const Element& e, Value* v) {
    if (!v)
      return fail(&e, nullptr, "absent_operand", [&] {
        return Decline{"absent_operand", fmt::format("expected {}, found no operand", e.text()), {}};
      });
    if (e.kind == ElementKind::tensor && v->is_constant())
      return fail(&e, nullptr, "constant_operand", [&] {
        return Decline{"constant_operand", "expected a computed value, found " + describe(v), {value_name(*v)}};
      });
    if (e.kind == ElementKind::constant && !(e.value ? v->is_constant() : is_constant_or_dequantized(v)))
      return fail(&e, v->producer, "not_constant", [&] {
        return Decline{"not_constant", fmt::format("expected constant {}, found {}", e.text(), describe(v)), {}};
      });
    if (e.value && !near(e, v)) return false;
    return bind(e, nullptr, v);
  }

  bool near(const Element& e, Value* v) {
    const auto got = scalar_constant(v);
    const double want = *e.value;
    const double slack = std::isfinite(want) ? tolerance_of(v->type.dtype) * std::max(std::fabs(want), 1e-3) : 0;
    if (got && (std::fabs(*got - want) <= slack || *got == want)) return true;
    return fail(&e, nullptr, "constant_mismatch", [&] {
      const std::string place =
          v->uses.empty() ? "" : fmt::format(" at {} input {}", v->uses.front().node->name(), v->uses.front().index);
      return Decline{
          "constant_mismatch",
          fmt::format("expected constant {:.6g} (+-{:.2g}){}, found {}", want, slack, place, describe(v)),
          {fmt::format("expected {:.9g}", want), got ? fmt::format("found {:.9g}", *got) : "found a tensor"}};
    });
  }

  // Operands of `node` that may be the data operand, the preferred one first: where operands commute, the deeper one
  // (longest path from the inputs), then the one computed later.
  std::vector<size_t> data_operands(const Node& node, size_t sides) {
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

  static bool has_choice(const Node& node) {
    return is_commutative(operator_name(node)) && node.inputs[0] && node.inputs[1] && node.inputs[0]->producer &&
           node.inputs[1]->producer;
  }

  bool accept(const Element& e, Value* v, Node*& node) {
    ++tried;
    node = v ? v->producer : nullptr;
    if (auto between = unequal_pair(e.ops, node); between && !nodes.empty())
      return fail(&e, {}, node, std::move(*between), 1);
    if (!node || std::find(e.ops.begin(), e.ops.end(), operator_name(*node)) == e.ops.end())
      return fail(&e, node, "op_mismatch", [&] {
        return Decline{"op_mismatch", fmt::format("expected {}, found {}", e.text(), describe(v)), {}};
      });
    if (e.result && (*e.result >= node->outputs.size() || node->outputs[*e.result] != v))
      return fail(&e, node, "op_mismatch", [&] {
        return Decline{"op_mismatch", fmt::format("expected result {} of {}", *e.result, describe(*node)), {}};
      });
    Node* const taken = node;
    for (const Taken& t : nodes)
      if (t.node == taken) {
        ++dependent;
        if (!e.binding.empty() && t.element->binding == e.binding) return true;
        return fail(&e, taken, "already_matched", [&] {
          return Decline{"already_matched", describe(*taken) + " already stands for another element", {}};
        });
      }
    return fits_alone(e, *taken);
  }

  /// What the element asks of the node itself, whatever stands before it.
  bool fits_alone(const Element& e, Node& node) {
    for (size_t i = 1; i < node.outputs.size() && !e.shared && !e.result; ++i)
      if (matcher.graph().read_count(node.outputs[i]) > 0)
        return fail(&e, &node, "second_result_read", [&] {
          return Decline{"second_result_read", describe(node) + " has a second result that is read", {}};
        });
    for (const NodePredicate& p : e.predicates)
      if (auto decline = p.test(node)) return fail(&e, {}, &node, std::move(*decline), 0, true);
    return &node == anchor || e.shared || interior(e, node);
  }

  // Early refusal of values that surely escape: more readers than a join inside the pattern could explain is judged
  // at the end, but a graph output can be told at once.
  bool interior(const Element& e, Node& node) {
    for (const Value* v : node.outputs)
      if (matcher.graph().is_output(v))
        return fail(
            &e, &node, "graph_output",
            [&] {
              return Decline{"graph_output",
                             fmt::format("the result of {} is a graph output, so it must be stored", describe(node)),
                             {value_name(*v)}};
            },
            1);
    return true;
  }

  /// The element's operator makes `v`, or a Q/DQ pair stands between.
  bool operation(const Element& e, Value* v, const Next& k) {
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

  bool direct(const Element& e, Value* v, const Next& k) {
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

  // With sides given, every operand must be spoken for.
  bool fits_operands(const Element& e, Node& node) {
    size_t present = node.inputs.size();
    while (present > 0 && !node.inputs[present - 1]) --present;
    if (e.sides.empty() || present <= e.sides.size() + 1) return true;
    return fail(&e, &node, "operand_count", [&] {
      return Decline{"operand_count",
                     fmt::format("expected {} operands, {} has {}", e.sides.size() + 1, describe(node), present),
                     {}};
    });
  }

  bool take(const Element& e, Node* node) {
    trace.push_back({&e, node});
    if (std::none_of(nodes.begin(), nodes.end(), [&](const Taken& t) { return t.node == node; }))
      nodes.push_back({node, &e});
    return bind(e, node, node->output());
  }

  // Data operand first, so that the explanation follows the main path; then the sides in operand order.
  bool sides(const Element& e, Node& node, size_t data, size_t done, const Next& k) {
    if (done == e.sides.size()) return k(node.input(data));
    const Pattern& side = e.sides[done];
    size_t operand = done < data ? done : done + 1;
    Value* v = node.input(operand);
    return chain(side, side.chain().size(), v, [&](Value*) { return sides(e, node, data, done + 1, k); });
  }

  bool join(const Pattern& p, size_t end, const Element& e, Value* v, const Next& k) {
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

  bool branches(const Element& fork, Node& node, const std::vector<size_t>& order, size_t done, Value* start,
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

  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    for (const auto& [node, value] : choices)
      all.push_back(
          value ? fmt::format("{} continues through {}, the deeper operand is tried first", describe(*node),
                              describe(value))
                : fmt::format("the Q/DQ pair {}, {} is inside", describe(*node->input(0)->producer), describe(*node)));
    return all;
  }

  bool finish() {
    ++dependent;
    Match m;
    m.anchor = anchor;
    for (const Taken& t : nodes) m.nodes.push_back(t.node);
    std::sort(m.nodes.begin(), m.nodes.end(),
              [&](Node* a, Node* b) { return matcher.position(a) < matcher.position(b); });
    m.results.push_back(anchor->output());
    for (const Taken& t : nodes)
      for (Value* v : t.node->outputs) {
        if (t.node == anchor || !read_outside(matcher.graph(), v, m.nodes)) continue;
        if (!t.element->shared && t.element == &pair_element())
          return fail(nullptr, "Q/DQ", t.node, escaping_pair(*t.node), 1);
        if (!t.element->shared) return escape(*v, *t.element, m.nodes);
        m.results.push_back(v);
      }
    for (const Taken& t : nodes)
      if (t.element == &pair_element()) m.pairs.push_back(t.node);
    m.reads = external_reads(m.nodes);
    for (const auto& [name, bound] : bindings) m.bindings.emplace(name, bound);
    m.notes = notes();
    for (const MatchPredicate& p : where)
      if (auto decline = p.test(m)) return fail(nullptr, p.name, anchor, std::move(*decline), 1);
    found = std::move(m);
    return true;
  }

  bool escape(const Value& value, const Element& e, const std::vector<Node*>& inside) {
    return fail(
        &e, value.producer, "multi_consumer", [&] { return escaping(value, inside); }, 1);
  }

  Decline escaping(const Value& value, const std::vector<Node*>& inside) const {
    std::vector<std::string> readers, outside;
    for (const Use& use : value.uses) readers.push_back(describe(*use.node));
    if (matcher.graph().is_output(&value)) readers.push_back("graph output");
    for (const Use& use : value.uses)
      if (std::find(inside.begin(), inside.end(), use.node) == inside.end()) outside.push_back(describe(*use.node));
    return {"multi_consumer",
            fmt::format("{} has {} readers; also read by {}", describe(*value.producer), readers.size(),
                        fmt::join(outside, ", ")),
            readers};
  }

  PartialMatch partial() const {
    PartialMatch p;
    p.of = pattern.min_nodes();
    if (!best) return p;
    p.matched = best->matched;
    p.at = best->at;
    p.decline = best->decline;
    if (detail == Detail::codes) return p;
    p.expected = best->element ? best->element->text() : best->condition;
    for (const Step& step : best->trace)
      p.trace.push_back({step.element ? step.element->text() : "Q/DQ", step.node ? describe(*step.node) : "-"});
    return p;
  }
};

}  // namespace

MatchResult Matcher::match(const Pattern& pattern, Node* anchor, std::span<const MatchPredicate> where,
                           Detail detail) const {
  Attempt attempt{
      .matcher = *this, .tried = tried_, .pattern = pattern, .anchor = anchor, .where = where, .detail = detail};
  attempt.chain(pattern, pattern.chain().size(), anchor->output(), [&](Value*) { return attempt.finish(); });
  if (attempt.found) return {std::move(attempt.found), {}};
  return {std::nullopt, attempt.partial()};
}

std::vector<Match> Matcher::match_all(const Pattern& pattern, std::span<const MatchPredicate> where) const {
  std::vector<Match> all;
  for (Node* node : graph_.nodes())
    if (MatchResult r = match(pattern, node, where, Detail::codes)) all.push_back(std::move(*r.match));
  return all;
}

}  // namespace opfuse
