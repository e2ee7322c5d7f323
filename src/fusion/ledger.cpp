// Fills the ledger after all groups are chosen: each edge is inside a group or has the first rule that failed.
#include "fusion/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fusion/neighbours.hpp"

namespace opfuse {

static Decline patterns_only(const Value& v, const Node& reader) {
  return {
      "rules_off",
      fmt::format("no named pattern joins {} and {}, and the rule engine did not run", describe(&v), describe(reader)),
      {}};
}

static void price_edge(EdgeVerdict& edge, Value& v, Node& reader, Neighbours& neighbours) {
  const Neighbours::Trial trial = neighbours.of_edge(v, reader);
  edge.price = trial.price;
  edge.decline = trial.why
                     ? *trial.why
                     : Decline{"not_tried", fmt::format("no rule joins {} and {}", describe(&v), describe(reader)), {}};
  const auto names = [&](const std::string& end) { return edge.decline.message.find(end) != std::string::npos; };
  if (!names(edge.producer) || !names(edge.consumer))
    edge.decline.message =
        fmt::format("\"{}\" and \"{}\" are in two groups: {}", edge.producer, edge.consumer, edge.decline.message);
}

void fill_ledger(Planner& planner, const RuleEngine* rules, Neighbours* neighbours) {
  const Grouping& g = planner.grouping;
  for (Node* node : g.graph().nodes()) {
    std::vector<const Value*> done;
    for (Value* v : node->inputs) {
      if (!v || !v->producer || std::find(done.begin(), done.end(), v) != done.end()) continue;
      done.push_back(v);
      EdgeVerdict edge{value_name(*v), g.names().of(v->producer), g.names().of(node), {}, {}};
      const int group = g.group_of(node);
      if (group >= 0 && group == g.group_of(v->producer))
        edge.group = planner.candidate_of(group);
      else if (neighbours)
        price_edge(edge, *v, *node, *neighbours);
      else
        edge.decline = rules ? rules->reason(*v, *node) : patterns_only(*v, *node);
      planner.plan.edges.push_back(std::move(edge));
    }
  }
}

}  // namespace opfuse
