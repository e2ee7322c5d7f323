// A value that more readers have than are tried in pairs: elementwise ones of one shape become launches of many
// results.
//
//     x -- r1, x -- r2, ... x -- r9999        {r1 ... r64}, {r65 ... r128}, ...
//
// A batch is priced once, as a whole; in pairs it would be priced as often as it has readers. One that is refused is
// halved until it is a pair.
#include <algorithm>
#include <unordered_set>

#include "fusion/neighbours.hpp"
#include "fusion/node_kind.hpp"

namespace opfuse {
namespace {

/// One result, of the shape of all its nodes, or several of it.
bool is_map_of(const std::vector<Node*>& unit, const Shape& shape) {
  return std::all_of(unit.begin(), unit.end(), [&](const Node* n) {
    return kind_of(*n) == OpKind::elementwise &&
           std::all_of(n->outputs.begin(), n->outputs.end(), [&](const Value* v) { return v->type.shape == shape; });
  });
}

}  // namespace

/// Units of readers in the order of the graph; those of another shape than the first are left to their next value.
std::vector<Neighbours::Nodes> Neighbours::readers_of(const Value& value) const {
  std::vector<Node*> nodes;
  for (const Use& use : value.uses) nodes.push_back(use.node);
  std::vector<Nodes> units;
  std::unordered_set<const Node*> seen;  // the first of each: units are disjoint
  const Shape* shape = nullptr;
  for (Node* node : planner_.grouping.sorted(std::move(nodes))) {
    Nodes unit = unit_of(node);
    if (!shape) shape = &node->output()->type.shape;
    if (!is_map_of(unit, *shape)) continue;
    if (seen.insert(unit.front()).second) units.push_back(std::move(unit));
  }
  return units;
}

/// Whether units[begin, end) became one launch.
bool Neighbours::join_batch(const std::vector<Nodes>& units, size_t begin, size_t end) {
  Pair pair;
  pair.siblings = true;
  std::vector<int> groups;
  std::optional<GroupPrice> apart;
  for (size_t i = begin; i < end; ++i) {
    const std::optional<GroupPrice> price = price_of_unit(units[i]);
    if (!price || planner_.closed(units[i].front())) return false;
    apart = apart.value_or(GroupPrice{});
    *apart += *price;
    Nodes& part = i + 1 == end ? pair.second : pair.first;
    part.insert(part.end(), units[i].begin(), units[i].end());
    if (const int group = planner_.grouping.group_of(units[i].front()); group >= 0) groups.push_back(group);
    const Pair with{units[begin], {}, units[i], nullptr, true};
    if (i > begin && (unfit_kinds(with) || unfit_candidates(with))) return false;
  }
  Nodes all = pair.first;
  all.insert(all.end(), pair.second.begin(), pair.second.end());
  all = planner_.grouping.sorted(std::move(all));
  if (work_ > budget_ || planner_.refuse_place(all, groups)) return false;
  const auto joined = price_of(all);
  const auto* price = std::get_if<GroupPrice>(&joined);
  if (!price || slower(pair, {*apart, *price})) return false;
  rules_.join({units.begin() + static_cast<std::ptrdiff_t>(begin), units.begin() + static_cast<std::ptrdiff_t>(end)});
  return true;
}

void Neighbours::join_wide_readers() {
  const size_t most = planner_.limit(&Limits::grown_nodes);
  const std::vector<Value*> values = graph().values();
  for (const Value* value : values) {
    if (value->is_constant() || value->uses.size() <= planner_.limit(&Limits::sibling_readers)) continue;
    const std::vector<Nodes> units = readers_of(*value);
    for (size_t begin = 0; begin + 1 < units.size();) {
      size_t end = begin, nodes = 0;
      while (end < units.size() && (end < begin + 2 || nodes + units[end].size() <= most)) nodes += units[end++].size();
      while (end > begin + 1 && !join_batch(units, begin, end)) end = begin + (end - begin) / 2;
      begin = std::max(end, begin + 1);
    }
  }
}

}  // namespace opfuse
