// Overlap, convexity and savings of groups. Convexity is judged with all accepted groups contracted, because two
// groups that are each convex may still depend on each other.
#include "fusion/grouping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/outline.hpp"

namespace opfuse {

Grouping::Grouping(const Graph& graph)
    : matcher_(graph), names_(graph), group_(graph.nodes().size(), -1), order_(matcher_) {}

const std::vector<Node*>& Grouping::unit_of(const Node* node) const {
  static const std::vector<Node*> kItself;
  const int group = group_of(node);
  return group < 0 ? kItself : nodes_of(group);
}

int Grouping::accept(const std::vector<Node*>& nodes) {
  order_.merge(
      nodes, [&](const Node* n) -> auto& { return unit_of(n); });
  const int id = static_cast<int>(members_.size());
  members_.push_back(sorted(nodes));
  for (const Node* node : nodes) group_[matcher_.position(node)] = id;
  return id;
}

void Grouping::release(int group) {
  for (const Node* node : members_[static_cast<size_t>(group)])
    if (group_of(node) == group) group_[matcher_.position(node)] = -1;
  members_[static_cast<size_t>(group)].clear();
}

std::vector<Node*> Grouping::sorted(std::vector<Node*> nodes) const {
  std::sort(nodes.begin(), nodes.end(),
            [&](const Node* a, const Node* b) { return matcher_.position(a) < matcher_.position(b); });
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

static bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::optional<Decline> Grouping::overlap(const std::vector<Node*>& nodes, const std::vector<int>& ignoring) const {
  for (const Node* node : nodes) {
    const int g = group_of(node);
    if (g >= 0 && !contains(ignoring, g))
      return Decline{"overlap", fmt::format("{} already belongs to another group", describe(*node)), {names_.of(node)}};
  }
  for (const Value* v : external_reads(nodes)) {
    if (!v->producer) continue;
    const int g = group_of(v->producer);
    if (g < 0 || contains(ignoring, g)) continue;
    // Interior of the other group: everything that reads it is inside that group, so a reader outside makes it a
    // result.
    if (read_outside(graph(), v, nodes_of(g))) continue;
    return Decline{"overlap",
                   fmt::format("it reads \"{}\", which is interior to another group", value_name(*v)),
                   {value_name(*v)}};
  }
  return std::nullopt;
}

std::optional<Decline> Grouping::convexity(const std::vector<Node*>& nodes) const {
  const auto [node, reader] = order_.between(
      nodes, [&](const Node* n) -> auto& { return unit_of(n); });
  if (!node) return std::nullopt;
  return Decline{"not_convex",
                 fmt::format("{} lies between two nodes of the group", describe(*node)),
                 {names_.of(node), names_.of(reader)}};
}

std::vector<char> Grouping::cut_off(const Node* node, const std::vector<const Node*>& readers) const {
  return order_.depend_around(
      node, readers, [&](const Node* n) -> auto& { return unit_of(n); });
}

int64_t value_bytes(const Value& value, const SymbolValues& dims) {
  if (!value.type.shape.ranked) return 0;
  std::set<std::string> symbols;
  for (const Dim& d : value.type.shape.dims) d.collect_symbols(symbols);
  SymbolValues all = dims;
  for (const std::string& s : symbols) all.try_emplace(s, 1);
  int64_t bytes = static_cast<int64_t>(byte_size(value.type.dtype));
  for (const Dim& d : value.type.shape.dims) bytes *= std::max<int64_t>(d.evaluate(all), 0);
  return bytes;
}

int64_t Grouping::bytes_saved(const std::vector<Node*>& nodes, const SymbolValues& dims) const {
  int64_t saved = 0;
  for (const Node* node : nodes)
    for (const Value* v : node->outputs) {
      std::set<int> readers;
      for (const Use& use : v->uses)
        if (std::find(nodes.begin(), nodes.end(), use.node) != nodes.end()) readers.insert(use.node->id);
      const int64_t loads = static_cast<int64_t>(readers.size());
      if (loads == 0) continue;
      saved += value_bytes(*v, dims) * (loads + (read_outside(graph(), v, nodes) ? 0 : 1));
    }
  return saved;
}

}  // namespace opfuse
