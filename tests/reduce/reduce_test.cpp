// Minimising graphs by questions that need no compiler: which operators are left, which extents.
#include "reduce/reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "opfuse/error.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

Graph parsed(const std::string& text) {
  Graph graph = parse_graph(text, ops());
  verify(graph);
  return graph;
}

bool has(const Graph& graph, std::string_view op) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node* node) { return node->is(op); });
}

const char* const kModel = R"(graph (%x: f32[n,8,12,12], %z: f32[n,8,1,1]) {
  %w = const rand<1> : f32[16,8,3,3]
  %a = relu(%x)
  %s = sigmoid(%z)
  %b = mul(%a, %s)
  %c = conv(%b, %w) {pads = [1,1,1,1], strides = [2,2]}
  %t = tanh(%c)
  %m = softmax(%t) {axis = 1}
  %e = exp(%m)
  %y = neg(%e)
  return %y, %t
})";

TEST(Reduce, LeavesTheOperatorThatFails) {
  const Reduced reduced = reduce(parsed(kModel), [](const Graph& g) { return has(g, "softmax"); });
  EXPECT_TRUE(reduced.complete);
  EXPECT_EQ(reduced.graph.nodes().size(), 1u) << print(reduced.graph);
  EXPECT_EQ(reduced.graph.inputs().size(), 1u);
  EXPECT_EQ(reduced.graph.outputs().size(), 1u);
}

TEST(Reduce, LeavesAPairThatFailsTogether) {
  const Reduced reduced = reduce(parsed(kModel), [](const Graph& g) { return has(g, "sigmoid") && has(g, "softmax"); });
  EXPECT_LE(reduced.graph.nodes().size(), 4u) << print(reduced.graph);
}

TEST(Reduce, ShrinksExtentsAttributesAndWeights) {
  const Reduced reduced = reduce(parsed(kModel), [](const Graph& g) { return has(g, "conv"); });
  ASSERT_EQ(reduced.graph.nodes().size(), 1u) << print(reduced.graph);
  const Node& conv = *reduced.graph.nodes()[0];
  EXPECT_EQ(conv.input(1)->type.shape.elements(), Dim(1)) << print(reduced.graph);
  EXPECT_TRUE(reduced.graph.symbols().empty());
  EXPECT_FALSE(find(conv.attr_map(), "strides") &&
               std::get<std::vector<int64_t>>(*find(conv.attr_map(), "strides")).size())
      << print(reduced.graph);
}

TEST(Reduce, KeepsWhatTheFailureNeeds) {
  const auto open_and_padded = [](const Graph& g) {
    return !g.symbols().empty() && print(g).find("pads = [1,1,1,1]") != std::string::npos;
  };
  const Reduced reduced = reduce(parsed(kModel), open_and_padded);
  EXPECT_TRUE(open_and_padded(reduced.graph));
  EXPECT_EQ(reduced.graph.nodes().size(), 1u) << print(reduced.graph);
}

TEST(Reduce, BisectsLongModels) {
  Graph graph;
  Value* value = graph.add_input("x", {DType::f32, {4}});
  for (int i = 0; i < 500; ++i)
    value = graph.add_node(op_named(i == 321 ? "tanh" : "relu"), AttrMap{}, {value})->output();
  graph.set_outputs({value});
  size_t asked = 0;
  const Reduced reduced = reduce(graph, [&](const Graph& g) { return ++asked, has(g, "tanh"); });
  EXPECT_EQ(reduced.graph.nodes().size(), 1u);
  EXPECT_LT(asked, 60u);
}

TEST(Reduce, StopsWithTheBestSoFar) {
  int asked = 0;
  const Reduced reduced = reduce(parsed(kModel), [](const Graph& g) { return has(g, "softmax"); },
                                 {.stopped = [&] { return ++asked > 4; }});
  EXPECT_FALSE(reduced.complete);
  EXPECT_TRUE(has(reduced.graph, "softmax"));
}

TEST(Reduce, RefusesAModelThatDoesNotFail) {
  EXPECT_THROW(reduce(parsed(kModel), [](const Graph&) { return false; }), Error);
}

}  // namespace
}  // namespace opfuse
