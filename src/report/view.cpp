// Views of a model from its graphs: a source node is in the unit whose fused node names it among its sources. What no
// fused node names was folded into constants, removed or became a view, and stands for itself in the view before.
#include "report/view.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "fusion/grouping.hpp"
#include "ir/body.hpp"
#include "ir/located.hpp"
#include "ir/outline.hpp"
#include "report/view_builder.hpp"

namespace opfuse::report {
namespace {

constexpr size_t kMostText = 400;  ///< characters of a node's attributes

std::string attributes_of(const Node& node) {
  std::string text;
  for (const auto& [name, value] : node.attr_map())
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, text_of(value));
  if (text.size() > kMostText) text = text.substr(0, kMostText) + " ...";
  return text;
}

void collect_sources(const Node& node, std::vector<std::string>& names) {
  for (const Source& source : node.sources) names.push_back(source.name);
  if (node.body)
    for (const Node* inner : node.body->nodes()) collect_sources(*inner, names);
}

std::vector<std::string> sources_of(const Node& node) {
  std::vector<std::string> all, names;
  collect_sources(node, all);
  std::set<std::string> seen;
  for (std::string& name : all)
    if (seen.insert(name).second) names.push_back(std::move(name));
  return names;
}

View view_of(const Graph& graph, const std::function<ViewNode(const Node&, size_t)>& describe) {
  ViewBuilder builder;
  std::map<const Value*, int> value_of;
  const auto value = [&](const Value* v) {
    const auto [at, fresh] = value_of.emplace(v, 0);
    if (fresh)
      at->second = builder.add_value(
          {v->name, v->type.text(), v->type.shape.ranked ? value_bytes(*v, {}) : -1, v->is_constant()});
    return at->second;
  };
  for (const Value* input : graph.inputs()) builder.add_input(value(input));
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = *graph.nodes()[i];
    ViewNode described = describe(node, i);
    for (const Value* v : node.inputs)
      if (v) described.reads.push_back(value(v));
    for (const Value* v : node.outputs) described.results.push_back(value(v));
    builder.add_node(std::move(described));
  }
  for (const Value* output : graph.outputs()) builder.add_output(value(output));
  return builder.finish();
}

}  // namespace

/// The groups of a loop stand where it does: a drawing of it shows one part.
static void show_bodies(Graph& graph) {
  for (Node* node : std::vector<Node*>(graph.nodes())) {
    if (!node->body || stands_for_body(*node)) continue;
    show_bodies(*node->body);
    const std::vector<Value*> results = inline_body(graph, *node->body, node->inputs, node);
    for (size_t i = 0; i < results.size(); ++i) take_over(graph, node->outputs[i], results[i]);
    graph.erase(node);
  }
}

Views views_of(const Graph& model, const Graph& compiled, const FusionPlan& plan, const ArtifactProgram& program) {
  Views views;
  Graph fused = compiled.clone();
  show_bodies(fused);
  std::map<std::string, int> unit_of;
  for (const Node* node : fused.nodes()) {
    Unit unit{node->label, node->pattern, sources_of(*node), 0, {}};
    if (unit.label.empty()) unit.label = source_operator(*node);
    for (const std::string& name : unit.sources) unit_of.emplace(name, static_cast<int>(views.units.size()));
    views.units.push_back(std::move(unit));
  }
  views.before = view_of(model, [&](const Node& node, size_t) {
    const auto unit = unit_of.find(node.name());
    return ViewNode{node.name(),
                    source_operator(node),
                    attributes_of(node),
                    Kind::node,
                    unit == unit_of.end() ? -1 : unit->second,
                    {},
                    {}};
  });
  views.after = view_of(fused, [&](const Node& node, size_t index) {
    const Unit& unit = views.units[index];
    return ViewNode{node.name(),
                    unit.pattern.empty() ? source_operator(node) : unit.pattern,
                    node.body ? unit.label : attributes_of(node),
                    Kind::node,
                    static_cast<int>(index),
                    {},
                    {},
                    unit.sources};
  });
  give_launches(views.units, unit_of, program);
  for (const Candidate* group : plan.applied())
    if (const auto unit = unit_of.find(group->nodes.back()); unit != unit_of.end())
      views.units[static_cast<size_t>(unit->second)].bytes_saved += group->bytes_saved;
  return views;
}

void give_launches(std::vector<Unit>& units, const std::map<std::string, int>& unit_of,
                   const ArtifactProgram& program) {
  for (size_t l = 0; l < program.launches.size(); ++l)
    for (const std::string& source : program.launches[l].sources)
      if (const auto unit = unit_of.find(source); unit != unit_of.end()) {
        units[static_cast<size_t>(unit->second)].launches.push_back(static_cast<int>(l));
        break;
      }
}

}  // namespace opfuse::report
