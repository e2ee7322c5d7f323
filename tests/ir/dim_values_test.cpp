// Shape arithmetic backwards from a value: operators that only move elements move symbols as well.
#include "ir/dim_values.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/limits.hpp"
#include "ir/graph.hpp"
#include "ir/outline.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

std::optional<std::vector<Dim>> dims_of(const std::string& body) {
  const Graph graph = parse_graph(R"(graph (%x: f32[n,3,h,8]) {
    %s = shape(%x)
    %pairs = const dense<2,2> : i64[2]
    %flat = const dense<-1> : i64[1]
    %p = reshape(%s, %pairs)
    )" + body + R"(
    %v = reshape(%m, %flat)
    return %v
  })",
                                  ops());
  return dim_values(*graph.outputs()[0]);
}

const Dim n = Dim::symbol("n"), h = Dim::symbol("h");

TEST(DimValues, GoThroughATransposeOfAList) {
  EXPECT_EQ(dims_of("%m = transpose(%p) {perm = [1,0]}"), (std::vector<Dim>{n, h, 3, 8}));
}

TEST(DimValues, GoThroughAReversingSliceOfRows) {  // torch.nn.functional.pad: the last dimension's pair comes first
  const char* reversed = R"(%b = const dense<-1> : i64[1] %e = const dense<-9223372036854775807> : i64[1]
    %a = const dense<0> : i64[1] %m = slice(%p, %b, %e, %a, %b))";
  EXPECT_EQ(dims_of(reversed), (std::vector<Dim>{h, 8, n, 3}));
}

TEST(DimValues, GoThroughASliceOfColumns) {
  const char* second = R"(%b = const dense<1> : i64[1] %e = const dense<2> : i64[1] %m = slice(%p, %b, %e, %b))";
  EXPECT_EQ(dims_of(second), (std::vector<Dim>{3, 8}));
}

TEST(DimValues, StopAtBoundsThatAreOpen) {
  const char* open = R"(%b = const dense<0> : i64[1] %two = const dense<2> : i64[1] %three = const dense<3> : i64[1]
    %e = slice(%s, %two, %three) %m = slice(%p, %b, %e))";
  EXPECT_EQ(dims_of(open), std::nullopt);
}

TEST(DimValues, GoThroughAGroup) {  // a fused body is a graph of its own
  const char* grouped = R"(%z = const dense<0> : i64[1] %one = const dense<1> : i64[1] %two = const dense<2> : i64[1]
    %d = slice(%s, %z, %one, %z) %e = add(%d, %two) %m = concat(%e, %two) {axis = 0})";
  Graph graph =
      parse_graph(std::string("graph (%x: f32[n,3]) {\n %s = shape(%x)\n") + grouped + "\n return %m }", ops());
  std::vector<Node*> group;
  for (Node* node : graph.nodes())
    if (node->op->name == "slice" || node->op->name == "add") group.push_back(node);
  ASSERT_EQ(group.size(), 2);
  outline(graph, group, {fused_op(), "", "map"});
  EXPECT_EQ(dim_values(*graph.outputs()[0]), (std::vector<Dim>{n + 2, 2}));
}

/// n + 1 + 1 ... as shape arithmetic, then a list of so many of the last.
std::string chain(int links, const std::string& behind) {
  std::string text =
      "graph (%x: f32[n,3], %z: f32[1,3]) {\n %s = shape(%x)\n %one = const dense<1> : i64[1]\n"
      " %nil = const dense<0> : i64[1]\n %v0 = slice(%s, %nil, %one, %nil)\n";
  for (int i = 0; i < links; ++i) text += fmt::format(" %v{} = add(%v{}, %one)\n", i + 1, i);
  return text + fmt::format(" %last = add(%v{}, %nil)\n", links) + behind;
}

TEST(DimValues, ChainsMayBeOfAnyLength) {
  const Graph graph = parse_graph(
      chain(20000,
            " %three = const dense<3> : i64[1]\n %t = concat(%last, %three) {axis = 0}\n %y = expand(%z, %t)\n"
            " return %y\n}"),
      ops());
  EXPECT_EQ(graph.outputs()[0]->type.shape, (Shape{n + 20000, 3}));
}

TEST(DimValues, HowManyIntegersAreFollowedCanBeSet) {
  const auto wide = [] {
    return parse_graph(chain(
                           1, " %t = concat(" +
                                  [] {
                                    std::string list = "%last";
                                    for (int i = 1; i < 80; ++i) list += ", %one";
                                    return list;
                                  }() +
                                  ") {axis = 0}\n %w = slice(%t, %nil, %one, %nil)\n %three = const dense<3> : "
                                  "i64[1]\n %u = concat(%w, %three) {axis = 0}\n %y = expand(%z, %u)\n "
                                  "return %y\n}"),
                       ops());
  };
  EXPECT_FALSE(wide().outputs()[0]->type.shape.ranked);
  Limits limits;
  limits.shape_values = 80;
  const LimitScope scope(limits);
  EXPECT_EQ(wide().outputs()[0]->type.shape, (Shape{n + 1, 3}));
}

}  // namespace
}  // namespace opfuse
