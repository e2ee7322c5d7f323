// Everything fitted: what the nodes read and yield, and whether all readers of what lies between them are inside.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/outline.hpp"
#include "match/attempt.hpp"
#include "match/qdq.hpp"

namespace opfuse {

bool Attempt::finish() {
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

bool Attempt::escape(const Value& value, const Element& e, const std::vector<Node*>& inside) {
  return fail(
      &e, value.producer, "multi_consumer", [&] { return escaping(value, inside); }, 1);
}

Decline Attempt::escaping(const Value& value, const std::vector<Node*>& inside) const {
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

std::vector<std::string> Attempt::notes() const {
  std::vector<std::string> all;
  for (const auto& [node, value] : choices)
    all.push_back(
        value ? fmt::format("{} continues through {}, the deeper operand is tried first", describe(*node),
                            describe(value))
              : fmt::format("the Q/DQ pair {}, {} is inside", describe(*node->input(0)->producer), describe(*node)));
  return all;
}

PartialMatch Attempt::partial() const {
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

}  // namespace opfuse
