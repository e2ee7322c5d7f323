// Pearce and Kelly's dynamic topological order (A dynamic topological sort algorithm for directed acyclic graphs,
// 2006).
//
//     places      first ............................ last        M: the units that become one
//     before      M    f    b    .    f    M    b    M           f: depends on M     b: M depends on it
//     after       b    b    M    .    -    -    f    f           the others keep their places
//
// Both searches stay between M's first and last place: what is further on cannot lead back.
#include "fusion/contracted_order.hpp"

#include <algorithm>
#include <utility>

#include "base/fail.hpp"

namespace opfuse {

ContractedOrder::ContractedOrder(const Matcher& matcher) : matcher_(matcher) {
  const size_t count = matcher.graph().nodes().size();
  for (size_t i = 0; i < count; ++i) place_.push_back(i);
  seen_.assign(count, 0);
}

bool ContractedOrder::mark(const Node* node) const {
  uint32_t& seen = seen_[matcher_.position(node)];
  ++visited_;
  return std::exchange(seen, question_) != question_;
}

ContractedOrder::Range ContractedOrder::range_of(const std::vector<Node*>& nodes) const {
  Range range{place(nodes.front()), place(nodes.front())};
  for (const Node* node : nodes) {
    range.first = std::min(range.first, place(node));
    range.last = std::max(range.last, place(node));
  }
  return range;
}

ContractedOrder::Between ContractedOrder::between(const std::vector<Node*>& nodes, const UnitOf& unit_of) const {
  const size_t last = range_of(nodes).last;
  const uint32_t members = ++question_, outside = ++question_;
  for (const Node* node : nodes) seen_[matcher_.position(node)] = members;
  visited_ += nodes.size();
  std::vector<const Node*> work;
  const Node* reader = nullptr;
  const auto follow = [&](const Node* node) {
    for (const Value* v : node->outputs)
      for (const Use& use : v->uses) {
        const uint32_t seen = seen_[matcher_.position(use.node)];
        ++visited_;
        if (seen == members && !reader) reader = use.node;
        if (seen == members || seen == outside || place(use.node) > last) continue;
        seen_[matcher_.position(use.node)] = outside;
        work.push_back(use.node);
      }
  };
  for (const Node* node : nodes) follow(node);
  reader = nullptr;  // the set's own edges
  while (!work.empty()) {
    const Node* node = work.back();
    work.pop_back();
    const std::vector<Node*>& unit = unit_of(node);
    if (unit.empty()) {
      follow(node);
      if (reader) return {node, reader};
    }
    for (const Node* n : unit) {
      seen_[matcher_.position(n)] = outside;
      follow(n);
      if (reader) return {n, reader};
    }
  }
  return {};
}

std::vector<char> ContractedOrder::depend_around(const Node* node, const std::vector<const Node*>& readers,
                                                 const UnitOf& unit_of) const {
  size_t last = 0;
  for (const Node* reader : readers) last = std::max(last, place(reader));
  const uint32_t behind = ++question_, around = ++question_;  // marks by place, of whole units; around: behind those
  std::vector<const Node*> work;
  const auto follow = [&](const Node* from, const Node* member, uint32_t mark) {
    for (const Value* v : member->outputs)
      for (const Use& use : v->uses) {
        ++visited_;
        if (place(use.node) == place(from) || place(use.node) > last) continue;
        uint32_t& seen = seen_[place(use.node)];
        if (seen != behind && seen != around) work.push_back(use.node);
        if (seen != around) seen = mark;
      }
  };
  const auto follow_unit = [&](const Node* from, uint32_t mark) {
    const std::vector<Node*>& unit = unit_of(from);
    if (unit.empty()) follow(from, from, mark);
    for (const Node* member : unit) follow(from, member, mark);
  };
  follow_unit(node, behind);
  while (!work.empty()) {
    const Node* next = work.back();
    work.pop_back();
    follow_unit(next, around);
  }
  std::vector<char> found;
  for (const Node* reader : readers) found.push_back(seen_[place(reader)] == around);
  return found;
}

/// One node for each unit, outside of `nodes`, that depends on them (or that they depend on) within their range.
std::vector<const Node*> ContractedOrder::reached(const std::vector<Node*>& nodes, const UnitOf& unit_of,
                                                  bool forward) const {
  const Range range = range_of(nodes);
  ++question_;
  for (const Node* node : nodes) mark(node);
  std::vector<const Node*> work, found;
  const auto meet = [&](const Node* node) {
    if (place(node) < range.first || place(node) > range.last || !mark(node)) return;
    const std::vector<Node*>& unit = unit_of(node);
    found.push_back(node);
    if (unit.empty()) work.push_back(node);
    for (const Node* member : unit) mark(member), work.push_back(member);
  };
  const auto follow = [&](const Node* node) {
    if (forward) {
      for (const Value* v : node->outputs)
        for (const Use& use : v->uses) meet(use.node);
    } else {
      for (const Value* v : node->inputs)
        if (v && v->producer) meet(v->producer);
    }
  };
  for (const Node* node : nodes) follow(node);
  while (!work.empty()) {
    const Node* node = work.back();
    work.pop_back();
    follow(node);
  }
  std::sort(found.begin(), found.end(), [&](const Node* a, const Node* b) { return place(a) < place(b); });
  return found;
}

void ContractedOrder::merge(const std::vector<Node*>& nodes, const UnitOf& unit_of) {
  const std::vector<const Node*> before = reached(nodes, unit_of, false), after = reached(nodes, unit_of, true);
  std::vector<size_t> places;
  for (const Node* node : before) places.push_back(place(node));
  for (const Node* node : after) places.push_back(place(node));
  for (const Node* node : nodes) places.push_back(place(node));
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  OPFUSE_CHECK(places.size() > before.size() + after.size() || nodes.empty(), "a group of {} nodes is not convex",
               nodes.size());
  const auto move = [&](const Node* node, size_t to) {
    const std::vector<Node*>& unit = unit_of(node);
    if (unit.empty()) place_[matcher_.position(node)] = to;
    for (const Node* member : unit) place_[matcher_.position(member)] = to;
  };
  for (size_t i = 0; i < before.size(); ++i) move(before[i], places[i]);
  for (const Node* node : nodes) place_[matcher_.position(node)] = places[before.size()];
  for (size_t i = 0; i < after.size(); ++i) move(after[i], places[places.size() - after.size() + i]);
}

}  // namespace opfuse
