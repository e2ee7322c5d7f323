// Groups of equal structure are asked about once: names and weights do not count, what decides a region does.
#include "driver/known_groups.hpp"

#include <gtest/gtest.h>

#include "driver/pipeline.hpp"
#include "ir/outline.hpp"
#include "ops/registry.hpp"
#include "target/target.hpp"

namespace opfuse {
namespace {

OutlinedCopy group_of(const std::string& nodes, const std::string& given = "%x: f32[2, 4]") {
  const Graph graph = parse_graph("graph (" + given + ") { " + nodes + " return %y }", ops());
  return outline_copy(graph, graph.nodes(), {fused_op(), "trial", "trial"});
}

/// How many of the groups were asked about.
int asked(const std::vector<std::pair<std::string, std::string>>& groups) {
  const KnownGroups<int> known;
  int count = 0;
  for (const auto& [nodes, given] : groups) {
    const OutlinedCopy copy = group_of(nodes, given);
    known(
        *copy.node, [&] { return ++count; }, [](int) { return true; });
  }
  return count;
}

const std::string kX = "%x: f32[2, 4]";

TEST(KnownGroups, namesDoNotCount) {
  EXPECT_EQ(asked({{"%a = neg(%x) %y = exp(%a)", kX}, {"%b = neg(%z) %y = exp(%b)", "%z: f32[2, 4]"}}), 1);
}

TEST(KnownGroups, whatDecidesARegionCounts) {
  const std::string chain = "%a = neg(%x) %y = exp(%a)";
  EXPECT_EQ(asked({{chain, kX}, {"%a = exp(%x) %y = neg(%a)", kX}}), 2) << "operators";
  EXPECT_EQ(asked({{chain, kX}, {chain, "%x: f32[4, 2]"}}), 2) << "shapes";
  EXPECT_EQ(asked({{chain, "%x: f32[n, 4]"}, {chain, "%x: f32[m, 4]"}}), 2) << "symbols";
  EXPECT_EQ(asked({{"%a = leaky_relu(%x) {alpha=0.5} %y = exp(%a)", kX},
                   {"%a = leaky_relu(%x) {alpha=0.25} %y = exp(%a)", kX}}),
            2)
      << "attributes";
  EXPECT_EQ(asked({{"%a = neg(%x) %y = sub(%a, %x)", kX}, {"%a = neg(%x) %y = sub(%x, %a)", kX}}), 2) << "wiring";
  EXPECT_EQ(asked({{"%y = add(%x, %z)", kX + ", %z: f32[2, 4]"}, {"%y = add(%x, %x)", kX}}), 2) << "operands";
}

Graph with_constant(const std::string& op, const Tensor& constant, Shape x) {
  Graph graph;
  Value* in = graph.add_input("x", {DType::f32, std::move(x)});
  Value* c = graph.add_constant(constant, "c");
  graph.set_outputs({graph.add_node(ops().find(op), AttrMap{}, {in, c})->output()});
  return graph;
}

int asked(const Graph& a, const Graph& b) {
  const KnownGroups<int> known;
  int count = 0;
  for (const Graph* graph : {&a, &b}) {
    const OutlinedCopy copy = outline_copy(*graph, graph->nodes(), {fused_op(), "trial", "trial"});
    known(
        *copy.node, [&] { return ++count; }, [](int) { return true; });
  }
  return count;
}

TEST(KnownGroups, elementsCountWhereLoweringLooksAtThem) {
  const Tensor ones = Tensor::of<float>(DType::f32, {4, 4}, std::vector<float>(16, 1));
  const Tensor twos = Tensor::of<float>(DType::f32, {4, 4}, std::vector<float>(16, 2));
  EXPECT_EQ(asked(with_constant("matmul", ones, {2, 4}), with_constant("matmul", twos, {2, 4})), 1) << "weights";
  EXPECT_EQ(asked(with_constant("add", ones, {4, 4}), with_constant("add", twos, {4, 4})), 1) << "vectors";
  EXPECT_EQ(asked(with_constant("add", Tensor::scalar(DType::f32, 1), {4}),
                  with_constant("add", Tensor::scalar(DType::f32, 2), {4})),
            2)
      << "numbers";
  EXPECT_EQ(asked(with_constant("reshape", Tensor::from_i64({2, 8}), {4, 4}),
                  with_constant("reshape", Tensor::from_i64({8, 2}), {4, 4})),
            2)
      << "integers";
}

TEST(KnownGroups, theGraphAroundAGroupMayDecide) {
  const KnownGroups<int> known;
  Graph graph = parse_graph("graph (%x: f32[4]) { %a = neg(%x) %b = exp(%a) %y = tanh(%b) return %y }", ops());
  const Node* group = outline(graph, {graph.nodes()[1]}, {fused_op(), "group", "trial"});
  int count = 0;
  for (int i = 0; i < 2; ++i)
    known(
        *group, [&] { return ++count; }, [](int) { return true; });
  EXPECT_EQ(count, 2);
}

TEST(KnownGroups, pricesAreThoseWorkedOut) {
  const TargetInfo target = parse_target("cpu:avx2");
  const Pricing remembers = pricing_on(target);
  for (const std::string nodes :
       {"%a = neg(%x) %y = exp(%a)", "%a = exp(%x) %y = neg(%a)", "%a = neg(%x) %y = exp(%a)"}) {
    const OutlinedCopy copy = group_of(nodes);
    EXPECT_EQ(std::get<GroupPrice>(remembers(*copy.node)), std::get<GroupPrice>(pricing_on(target)(*copy.node)));
  }
}

TEST(KnownGroups, refusalsOfOneStructureNameTheirOwnGroup) {
  const Pricing remembers = pricing_on(parse_target("cpu:avx2"));
  for (const std::string name : {"first", "second"}) {
    const Graph graph = parse_graph(
        "graph (%x: f32[8, 8], %w: f32[8, 8]) { %a = matmul(%x, %w) %y = matmul(%a, %w) return %y }", ops());
    graph.nodes()[0]->sources = {Source{name}};
    const OutlinedCopy copy = outline_copy(graph, graph.nodes(), {fused_op(), "trial", "trial"});
    const auto decline = std::get<Decline>(remembers(*copy.node));
    EXPECT_EQ(decline.code, "not_generated");
    EXPECT_EQ(decline.evidence, std::vector{name});
  }
}

}  // namespace
}  // namespace opfuse
