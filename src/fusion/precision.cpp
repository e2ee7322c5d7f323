// Rules are applied in the order: those for all groups, then those with a node. What they say is kept in the plan
// alone: editing the plan's file does the same.
#include "fusion/precision.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "fusion/names.hpp"
#include "ops/conv.hpp"
#include "ops/gemm.hpp"
#include "ops/is_a.hpp"

namespace opfuse {
namespace {

constexpr std::array kPrecisions{kFullPrecision, "bf16", "f16", "tf32"};

/// Nodes of the graph and of its groups.
void collect(const Graph& graph, std::vector<const Node*>& all) {
  for (const Node* node : graph.nodes()) {
    all.push_back(node);
    if (node->op == fused_op()) collect(*node->body, all);
  }
}

bool has_product(const Node& node) {
  if (is_product(node)) return true;
  const auto inside = [](const Node* inner) { return has_product(*inner); };
  return node.body && std::any_of(node.body->nodes().begin(), node.body->nodes().end(), inside);
}

struct Setter {
  FusionPlan& plan;
  std::vector<std::string> names, products;  ///< of all nodes; of those that are or hold a product

  Setter(FusionPlan& of, const Graph& graph) : plan(of) {
    std::vector<const Node*> all;
    collect(graph, all);
    for (const Node* node : all) {
      names.push_back(node->name());
      if (node->op != fused_op() && has_product(*node)) products.push_back(node->name());
    }
  }

  static bool holds(const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  }
  bool multiplies(const Candidate& group) const {
    return std::any_of(group.nodes.begin(), group.nodes.end(), [&](const auto& node) { return holds(products, node); });
  }
  void set_alone(const std::string& node, const std::string& precision) {
    plan.precisions.erase(node);
    if (precision != kFullPrecision) plan.precisions[node] = precision;
  }

  void apply(const PrecisionRule& rule) {
    if (!rule.node.empty() && !holds(names, rule.node))
      throw fail(E::unknown_name, "there is no node \"{}\" for \"{}@{}\"", rule.node, rule.precision, rule.node)
          .hint(did_you_mean(rule.node, names));
    bool grouped = false;
    for (Candidate& group : plan.candidates) {
      if (!group.apply || !multiplies(group)) continue;
      if (!rule.node.empty() && !holds(group.nodes, rule.node)) continue;
      group.precision = rule.precision;
      grouped = true;
    }
    if (!rule.node.empty()) {
      if (!grouped) set_alone(rule.node, rule.precision);
      return;
    }
    for (const std::string& node : products)
      if (std::none_of(plan.candidates.begin(), plan.candidates.end(),
                       [&](const Candidate& c) { return c.apply && holds(c.nodes, node); }))
        set_alone(node, rule.precision);
  }
};

}  // namespace

bool is_product(const Node& node) { return is_a<Conv>(node) || is_matrix_product(node); }

void check_precision(const std::string& precision) {
  if (std::find(kPrecisions.begin(), kPrecisions.end(), precision) != kPrecisions.end()) return;
  throw fail(E::bad_option, "there is no precision \"{}\"", precision)
      .hint(fmt::format("precisions are {}, of all groups or with @NODE", fmt::join(kPrecisions, ", ")));
}

PrecisionRule parse_precision(std::string_view text) {
  const size_t at = text.find('@');
  PrecisionRule rule{std::string(text.substr(0, at)), {}};
  if (at != std::string_view::npos) rule.node = std::string(text.substr(at + 1));
  check_precision(rule.precision);
  return rule;
}

void set_precisions(FusionPlan& plan, const Graph& graph, const std::vector<std::string>& rules) {
  if (rules.empty()) return;
  std::vector<PrecisionRule> parsed;
  for (const std::string& rule : rules) parsed.push_back(parse_precision(rule));
  std::stable_partition(parsed.begin(), parsed.end(), [](const PrecisionRule& rule) { return rule.node.empty(); });
  Setter setter(plan, graph);
  for (const PrecisionRule& rule : parsed) setter.apply(rule);
}

std::string asked_precision(const std::vector<std::string>& rules, const std::string& node) {
  std::string all = kFullPrecision, own;
  for (const std::string& text : rules) {
    const PrecisionRule rule = parse_precision(text);
    if (rule.node.empty()) all = rule.precision;
    if (rule.node == node) own = rule.precision;
  }
  return own.empty() ? all : own;
}

std::map<std::string, std::string> precision_of_nodes(const FusionPlan& plan) {
  std::map<std::string, std::string> all = plan.precisions;
  for (const Candidate& group : plan.candidates)
    if (group.apply && group.precision != kFullPrecision) {
      if (!group.label.empty()) all[group.label] = group.precision;
      for (const std::string& node : group.nodes) all[node] = group.precision;
    }
  return all;
}

}  // namespace opfuse
