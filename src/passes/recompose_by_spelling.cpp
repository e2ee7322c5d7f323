// Recomposition by spelling: at each node, anchors last first, the match with most nodes wins. It becomes the single
// operator where that is bit for bit equal, else a composite node with the nodes as its body.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/outline.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

struct Found {
  const Spelling* spelling = nullptr;
  Match match;
};

// A refused constant in an otherwise complete spelling is worth telling.
bool near_miss(const PartialMatch& p) {
  return p.decline.code == "constant_mismatch" && p.matched >= 2 && p.matched + 1 >= p.of;
}

/// Makers before readers, first operands first: an order that the file's has no part in.
std::vector<Node*> by_operands(const Match& m) {
  std::vector<Node*> order;
  std::vector<std::pair<Node*, size_t>> open{{m.anchor, 0}};
  std::set<const Node*> left(m.nodes.begin(), m.nodes.end());
  left.erase(m.anchor);
  while (!open.empty()) {
    auto& [node, next] = open.back();
    if (next == node->inputs.size()) {
      order.push_back(node);
      open.pop_back();
      continue;
    }
    const Value* v = node->inputs[next++];
    if (v && v->producer && left.erase(v->producer)) open.emplace_back(v->producer, 0);
  }
  return order;
}

/// A composite has the name of its first node, whichever of two operands (scales of q and of k) the file makes first.
std::vector<Node*> nodes_of(const Match& m) {
  const std::vector<Node*> order = by_operands(m);
  return order.size() == m.nodes.size() && order.front() != m.nodes.front() ? order : m.nodes;
}

Node* rewrite(Graph& graph, const Found& f) {
  const Match& m = f.match;
  if (!f.spelling->exact || !m.pairs.empty()) return outline(graph, nodes_of(m), {composite_op(), f.spelling->op, {}});
  Node* node = graph.add_node(op_named(f.spelling->op), f.spelling->exact(m), {m.value("x")}, 1,
                              united_sources(m.nodes), m.anchor);
  take_over(graph, m.anchor->output(), node->output());
  for (auto it = m.nodes.rbegin(); it != m.nodes.rend(); ++it) graph.erase(*it);
  return node;
}

// The best spelling that ends at `anchor`; near misses go to `missed`.
Found find_spelling(const Matcher& matcher, const std::vector<Spelling>& spellings, Node* anchor,
                    std::vector<std::pair<const Spelling*, Decline>>& missed) {
  Found best;
  for (const Spelling& s : spellings) {
    const auto& last = *s.pattern.chain().back();
    if (last.kind == ElementKind::op &&
        std::find(last.ops.begin(), last.ops.end(), operator_name(*anchor)) == last.ops.end())
      continue;
    MatchResult r = matcher.match(s.pattern, anchor, s.where, Detail::codes);
    if (!r) {
      if (near_miss(r.partial)) missed.emplace_back(&s, matcher.match(s.pattern, anchor, s.where).partial.decline);
    } else if (!best.spelling || r.match->nodes.size() > best.match.nodes.size()) {
      best = {&s, std::move(*r.match)};
    }
  }
  return best;
}

bool recompose(Graph& graph, const std::vector<Spelling>& spellings, const char* pass, RewriteReport* report) {
  bool changed = false;
  const std::vector<Node*> order = graph.nodes();
  std::set<const Node*> gone;  // erased while the loop runs
  Matcher matcher(graph);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (gone.contains(*it) || (*it)->body) continue;
    std::vector<std::pair<const Spelling*, Decline>> missed;
    Found found = find_spelling(matcher, spellings, *it, missed);
    if (!found.spelling) {
      if (report)
        for (auto& [s, decline] : missed) report->declined(pass, s->op + ": " + s->form, (*it)->name(), decline);
      continue;
    }
    gone.insert(found.match.nodes.begin(), found.match.nodes.end());
    const std::string where = (*it)->name();
    matcher.changed_from(matcher.position(found.match.nodes.front()));
    Node* made = rewrite(graph, found);
    if (report)
      report->applied(
          pass, found.spelling->op + ": " + found.spelling->form, where,
          fmt::format("{} of {} nodes", made->body ? "composite" : made->op->name, found.match.nodes.size()));
    changed = true;
  }
  return changed;
}

/// A pass over a catalogue of spellings.
Pass spelled(const char* name, const char* summary, const std::vector<Spelling>& (*spellings)()) {
  const auto run = [name, spellings](Graph& graph, PassContext& context) {
    return recompose(graph, spellings(), name, context.report);
  };
  return {name, summary, run, {}};
}

}  // namespace

Pass recompose_norms() {
  return spelled("recompose-norms", "Name normalisations and softmax where exporters wrote primitives.",
                 norm_spellings);
}
Pass recompose_activations() {
  return spelled("recompose-activations", "Name the eight activations in every spelling.", activation_spellings);
}
Pass recompose_attention() {
  return spelled("recompose-attention", "Name attention where two products and a softmax spell it.",
                 attention_spellings);
}
Pass recompose_movement() {
  return spelled("recompose-movement", "Name channel shuffles and windows where reshapes and transposes spell them.",
                 movement_spellings);
}

}  // namespace opfuse
