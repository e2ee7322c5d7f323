// Views of an .opf: it keeps its plan, whose ledger names both ends and the tensor of every edge, and its launches. So
// the nodes have names and edges, but neither operators nor types.
#include <map>

#include "report/view_builder.hpp"

namespace opfuse::report {
namespace {

/// Nodes by name, in order of first mention, with what they read and compute.
class NamedNodes {
 public:
  explicit NamedNodes(ViewBuilder& builder) : builder_(builder) {}
  ViewNode& at(const std::string& name) {
    const auto [at, fresh] = index_.emplace(name, nodes_.size());
    if (fresh) nodes_.push_back({name, "", "", Kind::node, -1, {}, {}});
    return nodes_[at->second];
  }
  int value(const std::string& name) {
    const auto [at, fresh] = values_.emplace(name, 0);
    if (fresh) at->second = builder_.add_value({name, "", -1, false});
    return at->second;
  }
  void connect(const std::string& producer, const std::string& consumer, const std::string& tensor) {
    const int v = value(tensor);
    ViewNode& from = at(producer);
    if (std::find(from.results.begin(), from.results.end(), v) == from.results.end()) from.results.push_back(v);
    ViewNode& to = at(consumer);
    if (std::find(to.reads.begin(), to.reads.end(), v) == to.reads.end()) to.reads.push_back(v);
  }
  std::vector<ViewNode>& nodes() { return nodes_; }

 private:
  ViewBuilder& builder_;
  std::vector<ViewNode> nodes_;
  std::map<std::string, size_t> index_;
  std::map<std::string, int> values_;
};

}  // namespace

Views views_of(const Artifact& artifact, const ArtifactProgram& program) {
  Views views;
  if (artifact.plan_json.empty()) {
    views.missing = "the file was compiled without a plan, so it has no names of nodes and edges";
    return views;
  }
  const FusionPlan plan = plan_from_json(artifact.plan_json);
  std::map<std::string, int> unit_of;
  for (const ArtifactLaunch& launch : program.launches) {
    for (const std::string& source : launch.sources) unit_of.emplace(source, static_cast<int>(views.units.size()));
    views.units.push_back({launch.name, launch.pattern, launch.sources, 0, {}});
  }
  give_launches(views.units, unit_of, program);
  const auto unit = [&](const std::string& name) {
    const auto at = unit_of.find(name);
    return at == unit_of.end() ? -1 : at->second;
  };
  ViewBuilder before, after;
  NamedNodes nodes(before), launches(after);
  for (const EdgeVerdict& edge : plan.edges) nodes.connect(edge.producer, edge.consumer, edge.tensor);
  for (const Candidate* group : plan.applied()) {
    for (const std::string& name : group->nodes) nodes.at(name);
    if (const int u = unit(group->nodes.back()); u >= 0)
      views.units[static_cast<size_t>(u)].bytes_saved += group->bytes_saved;
  }
  const auto after_name = [&](const std::string& name) {
    return unit(name) < 0 ? name : views.units[static_cast<size_t>(unit(name))].label;
  };
  for (const Unit& u : views.units) launches.at(u.label);
  for (const EdgeVerdict& edge : plan.edges)
    if (unit(edge.producer) != unit(edge.consumer) || unit(edge.producer) < 0)
      launches.connect(after_name(edge.producer), after_name(edge.consumer), edge.tensor);
  for (ViewNode& node : nodes.nodes()) {
    node.unit = unit(node.name);
    before.add_node(node);
  }
  std::map<std::string, int> unit_called;
  for (size_t u = 0; u < views.units.size(); ++u) unit_called.emplace(views.units[u].label, static_cast<int>(u));
  for (ViewNode& node : launches.nodes()) {
    if (const auto at = unit_called.find(node.name); at != unit_called.end()) {
      const Unit& u = views.units[static_cast<size_t>(at->second)];
      node.unit = at->second, node.label = u.pattern, node.sources = u.sources;
    }
    after.add_node(node);
  }
  views.before = before.finish();
  views.after = after.finish();
  return views;
}

}  // namespace opfuse::report
