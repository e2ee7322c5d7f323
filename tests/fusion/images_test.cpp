#include "fusion/images.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/prepared.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

using ::testing::HasSubstr;

/// Three groups on maps of 8 x 16 x 16 (8 KB an image) with a residual, then one on maps of 8 x 4 x 4.
std::string net(const std::string& batch, const std::string& addend = "%y", const std::string& more = "") {
  return "graph (%x: f32[" + batch + R"(,8,16,16]) {
    %w1 = const rand<1> : f32[8,8,1,1]
    %w2 = const rand<2> : f32[8,1,3,3]
    %w3 = const rand<3> : f32[8,8,4,4]
    )" + more +
         R"(
    %a = conv(%x, %w1)
    %y = relu(%a)
    %d = conv(%y, %w2) {group = 8, pads = [1,1,1,1]}
    %r = relu(%d)
    %b = conv(%r, %w1)
    %s = add(%b, )" +
         addend + R"()
    %z = conv(%s, %w3) {strides = [4,4]}
    %e = relu(%z)
    return %e })";
}

Graph fused(const std::string& text) {
  const Graph graph = prepared_text(text);
  return apply(graph, make_plan(graph));
}

constexpr int64_t kMap = 8 * 16 * 16 * 4;

int count(const Graph& graph, std::string_view op) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node* node) { return node->is(op); }));
}

TEST(Images, GroupsOnMapsBeyondTheCachesRunOneByOne) {
  Graph graph = fused(net("3"));
  const Graph before = graph.clone();
  ASSERT_EQ(count(before, "fused"), 4);
  const std::vector<std::string> notes = run_by_images(graph, {1 << 20, 2 * kMap});
  ASSERT_EQ(notes.size(), 1u) << print(graph);
  EXPECT_THAT(notes[0], HasSubstr("4 groups run image by image: maps of at most 0.01 MB between them instead of 0.02"));
  ASSERT_NO_THROW(verify(graph));
  EXPECT_EQ(count(graph, "fused"), 3 * 4);
  EXPECT_EQ(count(graph, "split"), 1);
  EXPECT_EQ(count(graph, "concat"), 1);
  EXPECT_EQ(graph.outputs()[0]->name, before.outputs()[0]->name);
  EXPECT_EQ(graph.outputs()[0]->type, before.outputs()[0]->type);
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

TEST(Images, ImagesShareTheirWeightsAndKeepTheirSources) {
  Graph graph = fused(net("2"));
  const std::vector<Source> sources{{"here", "Conv"}};
  for (Node* node : graph.nodes()) node->sources = sources;
  const size_t constants = graph.constants().size();
  ASSERT_EQ(run_by_images(graph, {1 << 20, kMap}).size(), 1u);
  EXPECT_EQ(graph.constants().size(), constants);
  for (const Node* node : graph.nodes()) {
    if (!node->is("fused")) continue;
    EXPECT_EQ(node->sources, sources);
    EXPECT_THAT(node->label, ::testing::AnyOf(HasSubstr("[image 0]"), HasSubstr("[image 1]")));
  }
}

/// Two images; `more` follows %b.
Graph fused_pair(const std::string& more) {
  return fused(
      "graph (%x: f32[2,8,16,16]) { %w = const rand<1> : f32[8,8,4,4] %v = const rand<2> : f32[8,8,1,1] "
      "%a = conv(%x, %v) %b = relu(%a) " +
      more);
}

TEST(Images, SmallMapsBehindTheLargeOnesStayABatch) {
  Graph graph = fused_pair(
      "%c = conv(%b, %w) {strides = [4,4]} %d = relu(%c) "
      "%e = conv(%d, %v) %f = relu(%e) %g = conv(%f, %v) return %g }");
  const Graph before = graph.clone();
  ASSERT_EQ(run_by_images(graph, {1 << 20, kMap}).size(), 1u);
  EXPECT_EQ(count(before, "fused") + count(before, "conv"), 4);
  EXPECT_EQ(count(graph, "fused") + count(graph, "conv"), 2 * 2 + 2);
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

TEST(Images, AMapThatIsReadBehindThemIsPutTogetherToo) {
  Graph graph = fused_pair(
      "%c = conv(%b, %v) %d = relu(%c) "
      "%e = conv(%d, %w) {strides = [4,4]} return %e, %b }");
  const Graph before = graph.clone();
  ASSERT_EQ(run_by_images(graph, {1 << 20, kMap}).size(), 1u);
  EXPECT_EQ(count(graph, "concat"), 2);
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

void expect_unchanged(const std::string& text, const ImageCaches& caches) {
  Graph graph = fused(text);
  const std::string before = print(graph);
  EXPECT_TRUE(run_by_images(graph, caches).empty());
  EXPECT_EQ(print(graph), before);
}

TEST(Images, AloneWhereNothingIsGained) {
  expect_unchanged(net("1"), {1 << 20, kMap / 2});  // one image
  expect_unchanged(net("3"), {1 << 20, 3 * kMap});  // all maps fit
  expect_unchanged(net("3"), {256, 2 * kMap});      // weights of the second group would be read again from afar
  expect_unchanged(net("N"), {1 << 20, kMap / 2});  // an open batch
}

TEST(Images, AloneWhereAConstantHasAValuePerImage) {
  const std::string more = "%c = const rand<5> : f32[3,8,16,16]";
  Graph graph = fused(net("3", "%c", more));
  const Graph before = graph.clone();
  EXPECT_EQ(run_by_images(graph, {1 << 20, 2 * kMap}).size(), 1u);  // the two groups before it
  EXPECT_EQ(count(graph, "fused"), 3 * 2 + 2);
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

}  // namespace
}  // namespace opfuse
