// The order of contracted groups gives the answers of a search through the whole graph, and looks at less.
#include "fusion/contracted_order.hpp"

#include <gtest/gtest.h>

#include <set>

#include "fusion/planner.hpp"
#include "fusion/prepared.hpp"
#include "interp/random_inputs.hpp"

namespace opfuse {
namespace {

/// Elementwise nodes in rows: each reads one or two of the last `reach` values.
Graph random_graph(uint64_t seed, int count, int reach) {
  Random rng(seed, "order");
  Graph g;
  std::vector<Value*> values{g.add_input("x", {DType::f32, {4}})};
  const auto pick = [&] {
    const auto last = static_cast<int64_t>(values.size()) - 1;
    return values[static_cast<size_t>(rng.between(std::max<int64_t>(0, last - reach), last))];
  };
  for (int i = 0; i < count; ++i) {
    Node* n = rng.between(0, 2) == 0 ? g.add_node(op_named("neg"), AttrMap{}, {pick()}, 1)
                                     : g.add_node(op_named("add"), AttrMap{}, {pick(), pick()}, 1);
    values.push_back(n->output());
  }
  g.set_outputs({values.back()});
  return g;
}

/// Whether something outside of `nodes` depends on them and they on it, groups taken as one node: found by walking.
bool has_between(const std::set<Node*>& nodes, const std::vector<std::set<Node*>>& units) {
  const auto unit_of = [&](Node* n) {
    for (const std::set<Node*>& unit : units)
      if (unit.contains(n)) return unit;
    return std::set<Node*>{n};
  };
  std::set<Node*> seen;
  std::vector<Node*> work;
  const auto follow = [&](Node* n) {
    for (const Value* v : n->outputs)
      for (const Use& use : v->uses)
        if (!nodes.contains(use.node) && seen.insert(use.node).second) work.push_back(use.node);
  };
  for (Node* n : nodes) follow(n);
  while (!work.empty()) {
    Node* n = work.back();
    work.pop_back();
    for (Node* member : unit_of(n)) {
      for (const Value* v : member->outputs)
        for (const Use& use : v->uses)
          if (nodes.contains(use.node)) return true;
      seen.insert(member);
      follow(member);
    }
  }
  return false;
}

TEST(ContractedOrder, AnswersAsASearchOfTheWholeGraphDoes) {
  int between = 0, merged = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Graph g = random_graph(seed, 30, static_cast<int>(2 + seed % 12));
    Random rng(seed, "groups");
    const Matcher matcher(g);
    ContractedOrder order(matcher);
    std::vector<std::set<Node*>> units;
    const auto members = [&](const Node* n) -> const std::vector<Node*>& {
      static std::vector<Node*> found;
      found.clear();
      for (const std::set<Node*>& unit : units)
        if (unit.contains(const_cast<Node*>(n))) found.assign(unit.begin(), unit.end());
      return found;
    };
    for (int trial = 0; trial < 60; ++trial) {
      std::set<Node*> wanted;  // whole units
      for (int64_t i = rng.between(2, 3); i > 0; --i) {
        Node* n = g.nodes()[static_cast<size_t>(rng.between(0, 29))];
        const std::vector<Node*> unit = members(n);
        wanted.insert(n);
        wanted.insert(unit.begin(), unit.end());
      }
      if (wanted.size() > 12) continue;
      const std::vector<Node*> nodes(wanted.begin(), wanted.end());
      const auto found = order.between(nodes, members);
      ASSERT_EQ(found.node != nullptr, has_between(wanted, units)) << "seed " << seed << " trial " << trial;
      between += found.node != nullptr;
      if (found.node) {
        EXPECT_FALSE(wanted.contains(const_cast<Node*>(found.node)));
        EXPECT_TRUE(wanted.contains(const_cast<Node*>(found.reader)));
        continue;
      }
      order.merge(nodes, members);
      std::erase_if(units, [&](const std::set<Node*>& unit) { return wanted.contains(*unit.begin()); });
      units.push_back(wanted);
      ++merged;
    }
  }
  EXPECT_GT(between, 200);
  EXPECT_GT(merged, 200);
}

TEST(ContractedOrder, ReadersThatDependAroundAreThoseWithSomethingBetween) {
  int around = 0, direct = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Graph g = random_graph(seed, 30, static_cast<int>(2 + seed % 12));
    Random rng(seed, "readers");
    Grouping grouping(g);
    std::vector<std::set<Node*>> units;
    const auto unit_of = [&](Node* n) {
      const int group = grouping.group_of(n);
      return group < 0 ? std::vector<Node*>{n} : grouping.nodes_of(group);
    };
    for (int trial = 0; trial < 30; ++trial) {
      Node* node = g.nodes()[static_cast<size_t>(rng.between(0, 29))];
      const std::vector<Node*> first = unit_of(node);
      std::vector<const Node*> readers;
      for (Node* member : first)
        for (const Use& use : member->output()->uses)
          if (unit_of(use.node) != first) readers.push_back(use.node);
      if (readers.empty()) continue;
      const std::vector<char> found = grouping.cut_off(node, readers);
      for (size_t i = 0; i < readers.size(); ++i) {
        const std::vector<Node*> second = unit_of(const_cast<Node*>(readers[i]));
        std::set<Node*> both(first.begin(), first.end());
        both.insert(second.begin(), second.end());
        ASSERT_EQ(found[i] != 0, has_between(both, units)) << "seed " << seed << " trial " << trial << " reader " << i;
        ++(found[i] ? around : direct);
        if (found[i] || i + 1 < readers.size() || both.size() > 12) continue;
        for (const std::vector<Node*>& unit : {first, second})
          if (const int group = grouping.group_of(unit.front()); group >= 0) grouping.release(group);
        grouping.accept({both.begin(), both.end()});
        std::erase_if(units, [&](const std::set<Node*>& unit) { return both.contains(*unit.begin()); });
        units.push_back(both);
      }
    }
  }
  EXPECT_GT(around, 200);
  EXPECT_GT(direct, 200);
}

Graph repeated(int count, const std::string& step, const std::string& last) {
  std::string body;
  for (int i = 0; i < count; ++i) {
    std::string text = step;
    for (const auto& [mark, number] : {std::pair{"$i", i}, {"$j", i + 1}})
      for (size_t at; (at = text.find(mark)) != std::string::npos;) text.replace(at, 2, std::to_string(number));
    body += text + "\n";
  }
  return parse_graph(
      "graph (%v0: f32[1,64]) {\n" + body + " %y = " + last + "(%v" + std::to_string(count) + ")\n return %y\n}",
      ops());
}

/// Twice the nodes are twice the work, within a quarter.
void expect_linear(const std::string& step) {
  size_t visited[2] = {};
  for (int i : {0, 1}) {
    const Graph g = repeated(400 << i, step, "neg");
    const PlanOptions options;
    Planner planner(g, options);
    planner.run();
    visited[i] = planner.grouping.visited();
  }
  EXPECT_LT(static_cast<double>(visited[1]), 2.5 * static_cast<double>(visited[0])) << step;
  EXPECT_GT(visited[1], 800u);
}

TEST(ContractedOrder, PlanningChainsLooksAtEachNodeBoundedlyOften) {
  expect_linear("%v$j = tanh(%v$i)");
  expect_linear("%v$j = add(%v$i, %v$i)");
  expect_linear("%v$j = add(%v$i, %v0)");
}

TEST(ContractedOrder, PlanningDiamondsLooksAtEachNodeBoundedlyOften) {
  expect_linear("%l$i = relu(%v$i)\n %r$i = sigmoid(%v$i)\n %v$j = add(%l$i, %r$i)");
}

}  // namespace
}  // namespace opfuse
