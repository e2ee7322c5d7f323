// Queries on plans, and applying one.
#include "fusion/plan.hpp"

#include <algorithm>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "fusion/grouping.hpp"
#include "ir/outline.hpp"

namespace opfuse {

const Candidate* FusionPlan::find(std::string_view id) const {
  for (const Candidate& c : candidates)
    if (c.id == id) return &c;
  return nullptr;
}

Candidate& FusionPlan::at(std::string_view id) {
  std::vector<std::string> ids;
  for (Candidate& c : candidates) {
    if (c.id == id) return c;
    ids.push_back(c.id);
  }
  throw fail(E::unknown_name, "the plan has no candidate \"{}\"", id).hint(did_you_mean(id, ids));
}

std::vector<const Candidate*> FusionPlan::applied() const {
  std::vector<const Candidate*> list;
  for (const Candidate& c : candidates)
    if (c.apply) list.push_back(&c);
  return list;
}

std::vector<const Candidate*> FusionPlan::missed() const {
  std::vector<const Candidate*> list;
  for (const Candidate& c : candidates)
    if (!c.apply && c.decline && c.decline->code != "overlap" && c.decline->code != "disabled") list.push_back(&c);
  return list;
}

const std::vector<std::string>& rule_names() {
  static const std::vector<std::string> names{"map", "epilogue", "row", "prologue"};
  return names;
}

std::map<std::string, int> FusionPlan::module_counts() const {
  std::map<std::string, int> counts;
  for (const Candidate& c : candidates)
    if (c.apply && c.named) ++counts[c.module];
  return counts;
}

QdqSummary qdq_summary(const FusionPlan& plan) {
  QdqSummary summary;
  for (const Candidate* c : plan.applied())
    for (const QdqPoint& p : c->points) {
      ++summary.declared;
      if (std::find(summary.tensors.begin(), summary.tensors.end(), p.tensor) == summary.tensors.end())
        summary.tensors.push_back(p.tensor);
    }
  return summary;
}

std::string model_hash(const Graph& graph) { return "xxh3:" + structural_hash(graph).hex(); }

static std::vector<Node*> members(const Grouping& grouping, const Candidate& c) {
  std::vector<Node*> nodes;
  for (const std::string& name : c.nodes) {
    Node* node = grouping.names().find(name);
    if (!node)
      throw fail(E::stale_plan, "{} names the node \"{}\", which does not exist", c.id, name)
          .hint("make the plan again for this model");
    nodes.push_back(node);
  }
  return grouping.sorted(std::move(nodes));
}

static bool is_divisible(const std::string& pattern) {
  const std::vector<FusionPattern>& all = fusion_patterns();
  return std::any_of(all.begin(), all.end(), [&](const FusionPattern& p) { return p.name == pattern && p.divisible; });
}

/// A plan is a file that people edit: what they chose is judged like what the planner chooses.
static void check_legal(const Graph& graph, const Candidate& c, const std::vector<Node*>& nodes,
                        const Legality& legal) {
  if (!legal || is_divisible(c.pattern)) return;
  if (const auto decline = legal(*outline_copy(graph, nodes, {fused_op(), c.module, c.pattern}).node))
    throw fail(E::bad_option, "{} cannot be one kernel, {}: {}", c.id, decline->code, decline->message)
        .hint("set apply to false there, or restore its nodes");
}

Graph apply(const Graph& graph, const FusionPlan& plan, bool allow_stale, const Legality& legal) {
  if (!allow_stale && plan.model != model_hash(graph))
    throw fail(E::stale_plan, "the plan was made for another model ({}, this one is {})", plan.model, model_hash(graph))
        .hint("make the plan again, or pass --allow-stale when only weights or dimensions differ");
  Graph fused = graph.clone();
  std::vector<std::pair<const Candidate*, std::vector<Node*>>> groups;
  Grouping grouping(fused);
  for (const Candidate* c : plan.applied()) {
    std::vector<Node*> nodes = members(grouping, *c);
    if (nodes.empty()) throw fail(E::stale_plan, "{} has no nodes", c->id);
    std::optional<Decline> decline = grouping.overlap(nodes);
    if (!decline) decline = grouping.convexity(nodes);
    if (decline)
      throw fail(E::bad_option, "{} cannot be applied with the other chosen groups: {}", c->id, decline->message)
          .hint("set apply to false in one of them");
    check_legal(fused, *c, nodes, legal);
    grouping.accept(nodes);
    groups.emplace_back(c, std::move(nodes));
  }
  for (auto& [c, nodes] : groups)
    outline(fused, nodes, {fused_op(), c->label.empty() ? c->module : c->label, c->pattern});
  fused.sort_topologically();
  return fused;
}

}  // namespace opfuse
