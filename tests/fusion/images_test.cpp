// Groups that run image by image: which, what reports say, and the same values, as a loop and unrolled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/explain/shaping_text.hpp"
#include "fusion/prepared.hpp"
#include "ir/for_parts.hpp"
#include "region/unroll_parts.hpp"
#include "shape/shaping_passes.hpp"
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
constexpr ImageCaches kCaches = {kMap, 1 << 20};  ///< one image's map, and all that the tests have

int count(const Graph& graph, std::string_view op) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node* node) { return node->is(op); }));
}

const Node* loop_in(const Graph& graph) {
  for (const Node* node : graph.nodes())
    if (node->op == for_parts_op()) return node;
  return nullptr;
}

int groups(const Graph& graph) { return count(graph, "fused") + count(graph, "conv"); }

Graph unrolled(const Graph& graph) {
  Graph copies = graph.clone();
  unroll_parts(copies);
  return copies;
}

/// The groups of an image once, and so many that take all images; bit for bit the values of the graph.
void expect_groups(const Graph& before, int of_image, int of_all, const ImageCaches& caches = kCaches) {
  Graph graph = before.clone();
  ASSERT_EQ(loop_over_images()(graph, {.caches = caches}).size(), 1u) << print(graph);
  ASSERT_NO_THROW(verify(graph));
  ASSERT_TRUE(loop_in(graph)) << print(graph);
  EXPECT_EQ(groups(*loop_in(graph)->body), of_image) << print(graph);
  EXPECT_EQ(groups(graph), of_all) << print(graph);
  EXPECT_EQ(graph.outputs()[0]->name, before.outputs()[0]->name);
  EXPECT_EQ(graph.outputs()[0]->type, before.outputs()[0]->type);
  const auto images = static_cast<int>(before.inputs()[0]->type.shape[0].value());
  testing::expect_same_values(before, graph, {.tolerance = 0});
  const Graph copies = unrolled(graph);
  ASSERT_NO_THROW(verify(copies));
  EXPECT_EQ(groups(copies), images * of_image + of_all) << print(copies);
  testing::expect_same_values(before, copies, {.tolerance = 0});
}

TEST(Images, GroupsOnMapsBeyondTheCachesRunOneByOne) {
  const Graph before = fused(net("3"));
  ASSERT_EQ(count(before, "fused"), 4);
  expect_groups(before, 4, 0);
  Graph graph = before.clone();
  EXPECT_THAT(shaping_lines(loop_over_images()(graph, {.caches = kCaches})).at(0),
              HasSubstr("4 groups run image by image: maps of at most 0.01 MB between them instead of 0.02"));
  EXPECT_EQ(count(graph, "for_parts"), 1);
}

TEST(Images, DumpsAndReproducersAreReadBack) {
  Graph graph = fused(net("3"));
  loop_over_images()(graph, {.caches = kCaches});
  const ParseOptions with{.data = constant_data(graph), .folder = ""};
  EXPECT_TRUE(equal(parse_graph(print(graph), ops(), with), graph));
  const Graph copies = unrolled(graph);
  EXPECT_TRUE(equal(parse_graph(print(copies), ops(), with), copies));
}

TEST(Images, AnImageHasTheWeightsAndSourcesOfAll) {
  Graph graph = fused(net("2"));
  const std::vector<Source> sources{{"here", "Conv"}};
  for (Node* node : graph.nodes()) node->sources = sources;
  std::set<const void*> weights;
  for (const Value* v : graph.constants()) weights.insert(v->constant->data());
  ASSERT_EQ(loop_over_images()(graph, {.caches = kCaches}).size(), 1u);
  const Node* loop = loop_in(graph);
  ASSERT_TRUE(loop);
  EXPECT_EQ(loop->sources, sources);
  for (const Value* v : loop->body->constants()) EXPECT_TRUE(weights.contains(v->constant->data())) << v->name;
  for (const Node* node : loop->body->nodes()) EXPECT_EQ(node->sources, sources);
}

TEST(Images, ValuesOfAnImageAreNamedSo) {
  Graph graph = fused(net("2"));
  ASSERT_EQ(loop_over_images()(graph, {.caches = kCaches}).size(), 1u);
  ASSERT_TRUE(loop_in(graph));
  EXPECT_EQ(name_in_part(*loop_in(graph), "y", -1), "y[image]");
  EXPECT_EQ(name_in_part(*loop_in(graph), "y", 1), "y[image 1]");
  EXPECT_EQ(part_name("y[image]", "image", 1), "y[image 1]");
  const Graph copies = unrolled(graph);
  EXPECT_TRUE(copies.find_value("y[image 0]"));
  EXPECT_TRUE(copies.find_value("y[image 1]"));
}

/// Two images; `more` follows %b.
Graph fused_pair(const std::string& more) {
  return fused(
      "graph (%x: f32[2,8,16,16]) { %w = const rand<1> : f32[8,8,4,4] %v = const rand<2> : f32[8,8,1,1] "
      "%a = conv(%x, %v) %b = relu(%a) " +
      more);
}

TEST(Images, SmallMapsBehindTheLargeOnesStayABatch) {
  expect_groups(fused_pair("%c = conv(%b, %w) {strides = [4,4]} %d = relu(%c) "
                           "%e = conv(%d, %v) %f = relu(%e) %g = conv(%f, %v) return %g }"),
                2, 2);
}

TEST(Images, AMapThatIsReadBehindThemIsPutTogetherToo) {
  const Graph before = fused_pair(
      "%c = conv(%b, %v) %d = relu(%c) "
      "%e = conv(%d, %w) {strides = [4,4]} return %e, %b }");
  expect_groups(before, 3, 0);
  Graph graph = before.clone();
  loop_over_images()(graph, {.caches = kCaches});
  ASSERT_TRUE(loop_in(graph));
  EXPECT_EQ(loop_in(graph)->outputs.size(), 2u);
}

TEST(Images, NormsTransposesMeansAndLinearsOfAnImage) {
  // a ConvNeXt block, and a gate from means
  const std::string text = R"(graph (%x: f32[3,8,16,16]) {
    %k = const rand<1> : f32[8,1,3,3] %s = const rand<2> : f32[8] %o = const rand<3> : f32[8] %w = const rand<4> : f32[8,8]
    %d = conv(%x, %k) {group = 8, pads = [1,1,1,1]}
    %t = transpose(%d) {perm = [0,2,3,1]}
    %n = layer_norm(%t, %s, %o) {axis = -1}
    %m = matmul(%n, %w)
    %b = add(%m, %o)
    %u = transpose(%b) {perm = [0,3,1,2]}
    %r = add(%u, %x)
    %g = reduce_mean(%r) {axes = [2,3], keepdims = 1}
    %y = mul(%r, %g)
    return %y })";
  const Graph before = fused(text);
  Graph graph = before.clone();
  ASSERT_EQ(loop_over_images()(graph, {.caches = kCaches}).size(), 1u) << print(before);
  EXPECT_EQ(graph.outputs()[0]->producer->op->name, "for_parts") << print(graph);
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

void expect_unchanged(const std::string& text, const ImageCaches& caches = kCaches) {
  Graph graph = fused(text);
  const std::string before = print(graph);
  EXPECT_TRUE(loop_over_images()(graph, {.caches = caches}).empty());
  EXPECT_EQ(print(graph), before);
}

TEST(Images, AloneWhereNothingIsGained) {
  expect_unchanged(net("1"));                       // one image
  expect_unchanged(net("3"), {3 * kMap, 1 << 20});  // all maps fit
  expect_unchanged(net("N"));                       // an open batch
}

TEST(Images, AloneWhereImagesMeet) {
  const auto text = [](const std::string& meet) {
    return "graph (%x: f32[8,8,16,16], %c: f32[8,16,16], %w: f32[8,8,3,3]) { %v = const rand<2> : f32[8,8,1,1] " +
           meet + " %a = conv(%m, %v) %b = relu(%a) %e = conv(%b, %v) return %e }";
  };
  expect_unchanged(text("%m = add(%x, %c)"));  // a map of fewer dimensions is the same for all images
  expect_unchanged(text("%m = conv(%x, %w) {pads = [1,1,1,1]}"));  // computed weights, as many as images
  expect_unchanged(text("%s = relu(%w) %m = conv(%x, %s) {pads = [1,1,1,1]}"));
  expect_unchanged(text("%m, %i = max_pool(%x) {kernel_shape = [3,3], pads = [1,1,1,1]}"));  // indices of the batch
  expect_unchanged(text("%m = transpose(%x) {perm = [1,0,2,3]}"));
  expect_unchanged(text("%z = reduce_mean(%x) {axes = [0], keepdims = 1} %m = sub(%x, %z)"));
  expect_unchanged(text("%s = const rand<1> : f32[8,8,16,16] %m = layer_norm(%x, %s) {axis = 0}"));
}

TEST(Images, AloneWhereAConstantHasAValuePerImage) {
  expect_groups(fused(net("3", "%c", "%c = const rand<5> : f32[3,8,16,16]")), 2, 2);  // the two groups before it
}

}  // namespace
}  // namespace opfuse
