// Neighbours between which several views lie, or one view of several results:
//
//     add -- slice --.              add -- split == sigmoid, mul         {add, views, mul} is one launch, or two and
//     the
//        \            mul                                                views between them cost nothing
//         -- slice --'
//
// Of what is read behind views the reader and the launch in front of them are the neighbours, so an edge that begins at
// a view has their verdict.
#include <algorithm>

#include "fusion/neighbours.hpp"
#include "ops/concat.hpp"
#include "ops/is_a.hpp"

namespace opfuse {
namespace {

using Nodes = std::vector<Node*>;

bool contains(const Nodes& nodes, const Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

template <class Visit>
void each_reader(const Node& node, Visit&& visit) {
  for (const Value* v : node.outputs)
    for (const Use& use : v->uses) visit(use.node);
}

}  // namespace

/// Of one operand's memory, in no group.
bool Neighbours::is_view(Node* node) const {
  return costs_nothing(*node) && !is_a<Concat>(*node) && planner_.grouping.group_of(node) < 0;
}

/// Views of the results of `first`, and views of those; none where there are more than groups look through.
Neighbours::Nodes Neighbours::views_behind(const Nodes& first) const {
  const size_t most = planner_.limit(&Limits::between_nodes);
  Nodes views, open = first;
  for (size_t i = 0; i < open.size(); ++i) {
    size_t readers = 0;
    each_reader(*open[i], [&](Node*) { ++readers; });
    if (readers > planner_.limit(&Limits::priced_operands)) continue;
    each_reader(*open[i], [&](Node* reader) {
      if (contains(first, reader) || contains(views, reader) || !is_view(reader)) return;
      const auto& outputs = reader->outputs;
      if (std::any_of(outputs.begin(), outputs.end(), [&](const Value* v) { return graph().is_output(v); })) return;
      views.push_back(reader);
      open.push_back(reader);
    });
    if (views.size() > most) return {};
  }
  return views;
}

/// A reader takes the views that nobody reads but it and its views.
void Neighbours::add_through_views(const Nodes& first, Value* value, std::vector<Pair>& found) const {
  const Nodes views = views_behind(first);
  if (views.empty()) return;
  for (Node* view : views)
    each_reader(*view, [&](Node* reader) {
      if (contains(first, reader) || contains(views, reader)) return;
      const Nodes second = unit_of(reader);
      Nodes between = views;
      const auto read_elsewhere = [&](const Node* node) {
        bool elsewhere = false;
        each_reader(*node, [&](const Node* n) { elsewhere |= !contains(second, n) && !contains(between, n); });
        return elsewhere;
      };
      for (size_t before = 0; before != between.size();) {
        before = between.size();
        std::erase_if(between, [&](const Node* node) { return read_elsewhere(node); });
      }
      between = planner_.grouping.sorted(std::move(between));
      const bool known = std::any_of(found.begin(), found.end(), [&](const Pair& p) {
        return p.second == second && planner_.grouping.sorted(p.between) == between;
      });
      if (!between.empty() && !known) found.push_back({first, between, second, value});
    });
}

/// The launch in front of a view and a reader behind it, with all views between the two.
std::optional<Neighbours::Pair> Neighbours::pair_through(Node* view, Node* reader) const {
  Node* source = view;
  while (source && is_view(source))
    source = source->inputs.empty() || !source->input(0) ? nullptr : source->input(0)->producer;
  if (!source || source == view) return std::nullopt;
  std::optional<Pair> widest;
  for (Pair& pair : pairs_from(unit_of(source).front(), false))
    if (contains(pair.second, reader) && contains(pair.between, view))
      if (!widest || pair.between.size() > widest->between.size()) widest = std::move(pair);
  return widest;
}

}  // namespace opfuse
