// Terms of tokens: which tables move into the convolution that makes the tokens, and which stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/explain/shaping_text.hpp"
#include "fusion/prepared.hpp"
#include "shape/shaping_passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

/// Patches of a small image, tokens around them, positions.
struct Net {
  std::string concat = "concat(%cls, %t, %det) {axis = 1}", sum = "add(%c, %pos)", table = "1,9,8";
  std::string class_token = "%cls = const rand<4> : f32[1,1,8]", result = "%y", more;
};

Graph fused(const Net& net = {}) {
  const Graph graph = prepared_text(
      "graph (%x: f32[1,3,8,12], %other: f32[1,1,8]) {\n %w = const rand<1> : f32[8,3,4,4]\n %b = const rand<2> : "
      "f32[8]\n" +
      net.class_token + "\n %det = const rand<5> : f32[1,2,8]\n %pos = const rand<6> : f32[" + net.table +
      "]\n %conv = conv(%x, %w, %b) {strides = [4,4]} @\"conv\"\n %shape = const dense<1, 8, 6> : i64[3]\n"
      " %r = reshape(%conv, %shape)\n %t = transpose(%r) {perm = [0,2,1]}\n %c = " +
      net.concat + "\n %y = " + net.sum + " @\"add\"\n" + net.more + " return " + net.result + " }");
  PlanOptions options;  // a launch less is always a gain: the convolution stores its patches as rows
  options.price = [](const Node&) { return GroupPrice{1, 1, 1}; };
  return apply(graph, make_plan(graph, options));
}

TEST(Terms, AreAddedWhereTheTokensAreMade) {
  for (const Net& net :
       {Net{}, Net{.concat = "concat(%t, %det, %cls) {axis = -2}", .sum = "add(%pos, %c)"}, Net{.table = "9,8"},
        Net{.table = "9,1"}, Net{.table = "1,1,8"}, Net{.concat = "concat(%cls, %t) {axis = 1}", .table = "1,7,8"}}) {
    Graph graph = fused(net);
    const Graph before = graph.clone();
    const std::vector<ShapeVerdict> verdicts = add_in_parts()(graph);
    ASSERT_EQ(verdicts.size(), 1u) << print(before);
    EXPECT_FALSE(verdicts[0].refused);
    EXPECT_EQ(kind_of(verdicts[0]), "terms");
    EXPECT_EQ(verdicts[0].sources, (std::vector<std::string>{"conv", "add"}));
    ASSERT_NO_THROW(verify(graph));
    EXPECT_TRUE(graph.nodes().back()->is("concat")) << print(graph);
    EXPECT_EQ(graph.nodes().size(), before.nodes().size() - 1) << print(graph);
    testing::expect_same_values(before, graph, {.tolerance = 0});
  }
}

std::vector<ShapeVerdict> expect_spared(Graph graph, const ShapeContext& context = {}) {
  const Graph before = graph.clone();
  std::vector<ShapeVerdict> verdicts = add_in_parts()(graph, context);
  EXPECT_TRUE(equal(before, graph)) << print(graph);
  return verdicts;
}

TEST(Terms, SpareTokensOfWhichTwoAreComputed) {
  EXPECT_TRUE(expect_spared(fused({.concat = "concat(%other, %t, %det) {axis = 1}"})).empty());
}

TEST(Terms, SpareWhatIsReadElsewhere) {
  EXPECT_TRUE(expect_spared(fused({.result = "%y, %u", .more = " %u = relu(%t)\n"})).empty());
  EXPECT_TRUE(expect_spared(fused({.result = "%y, %t"})).empty());
  EXPECT_TRUE(expect_spared(fused({.result = "%y, %c"})).empty());
}

TEST(Terms, SpareWhatIsRefusedSwitchedOffOrWouldChangeItsKernel) {
  const auto code = [](const ShapeContext& context) {
    const auto verdicts = expect_spared(fused(), context);
    return verdicts.size() == 1 && verdicts[0].refused ? verdicts[0].refused->code : "";
  };
  EXPECT_EQ(code({.legal = [](const Node&) { return Decline{"not_generated", "", {}}; }}), "not_generated");
  EXPECT_EQ(code({.off = {"add-in-parts"}}), "disabled");
  EXPECT_EQ(code({.apart = {{"conv", "add"}}}), "no_fuse");
  EXPECT_EQ(code({.skeleton = [](const Node& n) { return std::to_string(n.body->nodes().size()); }}), "no_gain");
}

}  // namespace
}  // namespace opfuse
