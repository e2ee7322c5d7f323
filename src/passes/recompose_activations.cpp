// Recomposition by spelling: at each node, anchors last first, the match with most nodes wins. It becomes the single
// operator where that is bit for bit equal, else a composite node with the nodes as its body.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/outline.hpp"
#include "ops/registry.hpp"
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

Node* rewrite(Graph& graph, const Found& f) {
  const Match& m = f.match;
  if (!f.spelling->exact || !m.pairs.empty()) return outline(graph, m.nodes, {composite_op(), f.spelling->op, {}});
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
    MatchResult r = matcher.match(s.pattern, anchor, s.where);
    if (!r) {
      if (near_miss(r.partial)) missed.emplace_back(&s, r.partial.decline);
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
  std::optional<Matcher> matcher;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (gone.contains(*it) || (*it)->body) continue;
    if (!matcher) matcher.emplace(graph);
    std::vector<std::pair<const Spelling*, Decline>> missed;
    Found found = find_spelling(*matcher, spellings, *it, missed);
    if (!found.spelling) {
      if (report)
        for (auto& [s, decline] : missed) report->declined(pass, s->op + ": " + s->form, (*it)->name(), decline);
      continue;
    }
    gone.insert(found.match.nodes.begin(), found.match.nodes.end());
    const std::string where = (*it)->name();
    Node* made = rewrite(graph, found);
    if (report)
      report->applied(
          pass, found.spelling->op + ": " + found.spelling->form, where,
          fmt::format("{} of {} nodes", made->body ? "composite" : made->op->name, found.match.nodes.size()));
    matcher.reset();
    changed = true;
  }
  return changed;
}

}  // namespace

bool recompose_activations(Graph& graph, RewriteReport* report) {
  return recompose(graph, activation_spellings(), "recompose-activations", report);
}

bool recompose_norms(Graph& graph, RewriteReport* report) {
  return recompose(graph, norm_spellings(), "recompose-norms", report);
}

bool recompose_attention(Graph& graph, RewriteReport* report) {
  return recompose(graph, attention_spellings(), "recompose-attention", report);
}

bool recompose_movement(Graph& graph, RewriteReport* report) {
  return recompose(graph, movement_spellings(), "recompose-movement", report);
}

bool recompose_and_convert(Graph& graph, RewriteReport* report) {
  bool any = false;
  for (bool changed = true; changed; any |= changed) {
    changed = recompose_norms(graph, report);
    changed |= recompose_activations(graph, report);  // before the next: conv + 3 may begin a hard swish
    changed |= convert_einsum(graph, report);
    changed |= recompose_attention(graph, report);
    changed |= recompose_movement(graph, report);
    changed |= recompose_conv_affine(graph, report);
    changed |= remove_identity_pools(graph, report);
    changed |= pad_into_max_pool(graph, report);
    changed |= pad_into_conv(graph, report);
    changed |= unflatten_linear(graph, report);
    changed |= flatten_linear_to_conv1x1(graph, report);
    changed |= decompose_attention(graph, report);
    changed |= convert_shifted_windows(graph, report);  // looks for attention behind its projection
  }
  return transpose_of_unit_axes(graph, report) || any;
}

}  // namespace opfuse
