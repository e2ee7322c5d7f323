// A part of a view: breadth first from the named nodes, along edges in both directions.
#include <algorithm>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "report/view.hpp"

namespace opfuse::report {
namespace {

bool is_called(const View& view, const ViewNode& node, const std::string& name) {
  if (node.name == name || node.text == name) return true;
  if (std::find(node.sources.begin(), node.sources.end(), name) != node.sources.end()) return true;
  return std::any_of(node.results.begin(), node.results.end(),
                     [&](int v) { return view.values[static_cast<size_t>(v)].name == name; });
}

std::vector<int> named_nodes(const View& view, const std::string& name) {
  std::vector<int> found;
  std::vector<std::string> known;
  for (size_t n = 0; n < view.nodes.size(); ++n) {
    if (is_called(view, view.nodes[n], name)) found.push_back(static_cast<int>(n));
    known.push_back(view.nodes[n].name);
    known.insert(known.end(), view.nodes[n].sources.begin(), view.nodes[n].sources.end());
  }
  if (found.empty()) throw fail(E::unknown_name, "there is no node \"{}\"", name).hint(did_you_mean(name, known));
  return found;
}

}  // namespace

View part_of(const View& view, const std::string& name, int radius) {
  std::vector<std::vector<int>> near(view.nodes.size());
  for (const ViewEdge& edge : view.edges) {
    near[static_cast<size_t>(edge.from)].push_back(edge.to);
    near[static_cast<size_t>(edge.to)].push_back(edge.from);
  }
  std::vector<int> distance(view.nodes.size(), -1), queue = named_nodes(view, name);
  for (int n : queue) distance[static_cast<size_t>(n)] = 0;
  for (size_t at = 0; at < queue.size(); ++at) {
    const int d = distance[static_cast<size_t>(queue[at])];
    if (d == radius) continue;
    for (int other : near[static_cast<size_t>(queue[at])])
      if (distance[static_cast<size_t>(other)] < 0)
        distance[static_cast<size_t>(other)] = d + 1, queue.push_back(other);
  }
  View part;
  part.values = view.values;
  std::vector<int> now(view.nodes.size(), -1);
  for (size_t n = 0; n < view.nodes.size(); ++n)
    if (distance[n] >= 0) now[n] = static_cast<int>(part.nodes.size()), part.nodes.push_back(view.nodes[n]);
  for (const ViewEdge& e : view.edges)
    if (now[static_cast<size_t>(e.from)] >= 0 && now[static_cast<size_t>(e.to)] >= 0)
      part.edges.push_back({now[static_cast<size_t>(e.from)], now[static_cast<size_t>(e.to)], e.value});
  return part;
}

}  // namespace opfuse::report
