// A part must be convex: no path may leave it and come back, or it could not run as one node. Nodes get levels that
// rise by one behind each node that stays outside; supported nodes of one level that are connected are a part.
#include "partition.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "model_bytes.hpp"
#include "opfuse/bytes.hpp"
#include "opfuse/check.hpp"
#include "ort_calls.hpp"

namespace opfuse::ort {
namespace {

using Nodes = std::vector<const Node*>;

struct Outside {
  std::set<const Node*> nodes;
  void add(const Node* node, const std::string& why, const std::function<void(const std::string&)>& say) {
    if (nodes.insert(node).second)
      say(text_of(entry::Node_GetOperatorType, node) + " \"" + text_of(entry::Node_GetName, node) +
          "\" stays with ONNX Runtime: " + why);
  }
};

/// Convex, connected parts of `nodes` (in topological order) without those outside.
std::vector<Nodes> convex_parts(const Nodes& nodes, const std::set<const Node*>& outside) {
  std::map<std::string, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const ValueInfo* value : outputs_of(nodes[i])) producer[name_of(value)] = i;
  std::vector<int> level(nodes.size(), -1);
  std::vector<size_t> leader(nodes.size());
  std::iota(leader.begin(), leader.end(), size_t{0});
  const auto find = [&](size_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool taken = !outside.contains(nodes[i]);
    int at = taken ? 0 : -1;
    std::vector<size_t> before;
    for (const auto& values : {inputs_of(nodes[i]), implicit_inputs_of(nodes[i])})
      for (const ValueInfo* value : values)
        if (const auto found = producer.find(name_of(value)); found != producer.end() && found->second < i)
          before.push_back(found->second);
    for (const size_t p : before) at = std::max(at, level[p] + (taken && outside.contains(nodes[p]) ? 1 : 0));
    level[i] = at;
    for (const size_t p : before)
      if (taken && !outside.contains(nodes[p]) && level[p] == at) leader[find(i)] = find(p);
  }
  std::map<size_t, Nodes> parts;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!outside.contains(nodes[i])) parts[find(i)].push_back(nodes[i]);
  std::vector<Nodes> list;
  for (auto& [first, part] : parts) list.push_back(std::move(part));
  return list;
}

/// What keeps the part from compiling as a whole: nodes and reasons. Empty: it is compiled, into `made`.
std::map<const Node*, std::string> obstacles(const Graph* graph, const Nodes& nodes, const Options& options,
                                             std::optional<Executable>& made) {
  std::map<const Node*, std::string> found;
  ModelBytes source = model_of(graph, nodes);
  const auto blame = [&](const std::string& name, const std::string& why) {
    if (const auto at = source.nodes.find(name); at != source.nodes.end()) found[at->second] = why;
  };
  try {
    const Model model = load_bytes(std::move(source.bytes));
    for (const Unsupported& node : unsupported(model, options.target, options.compile)) blame(node.node, node.reason);
    if (found.empty()) made = compile(model, options.target, options.compile);
  } catch (const Error& error) {
    blame(error.diagnostic().node, error.diagnostic().message);
    if (found.empty()) throw;
  }
  return found;
}

}  // namespace

std::string key_of(const Nodes& nodes) {
  std::string key;
  for (const Node* node : nodes)
    for (const ValueInfo* value : outputs_of(node)) key += name_of(value) + '\n';
  return key;
}

Executable compile_nodes(const Graph* graph, const Nodes& nodes, const Options& options) {
  return compile(load_bytes(model_of(graph, nodes).bytes), options.target, options.compile);
}

std::vector<Part> parts_of(const Graph* graph, const Options& options,
                           const std::function<void(const std::string&)>& say) {
  const Nodes all = nodes_of(graph);
  Outside outside;
  for (const Node* node : all) {
    const std::string owner = text_of(entry::Node_GetEpName, node);
    if (!owner.empty()) outside.add(node, "it belongs to " + owner, say);
    if (const std::string why = cannot_write(node); !why.empty()) outside.add(node, why, say);
  }
  std::vector<Part> parts;
  const bool is_branch = get<const Node*>(entry::Graph_GetParentNode, graph) != nullptr;
  const size_t small_enough_to_stay = is_branch ? all.size() + 1 : all.size();  // a whole model is taken however small
  std::vector<Nodes> open = convex_parts(all, outside.nodes);
  while (!open.empty()) {
    const Nodes nodes = std::move(open.back());
    open.pop_back();
    if (nodes.size() < std::min(options.min_nodes, small_enough_to_stay)) {
      for (const Node* node : nodes) outside.add(node, "its part has fewer nodes than min_nodes", say);
      continue;
    }
    try {
      std::optional<Executable> made;
      const auto found = obstacles(graph, nodes, options, made);
      if (made) parts.push_back({nodes, key_of(nodes), std::move(*made)});
      if (made) continue;
      for (const auto& [node, why] : found) outside.add(node, why, say);
      for (Nodes& part : convex_parts(nodes, outside.nodes)) open.push_back(std::move(part));
    } catch (const std::exception& error) {
      for (const Node* node : nodes) outside.add(node, error.what(), say);
    }
  }
  return parts;
}

}  // namespace opfuse::ort
