// Loops over parts as text and as nodes: what is read back, what is refused, what the laws of types say.
#include "ir/for_parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "ir/outline.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

using ::testing::HasSubstr;

constexpr const char* kImages = R"(graph (%x: f32[6,4,8,8], %w: f32[8,4,1,1]) {
  %y = for_parts (%x, %w) {parts = 3, of = "image", cuts = [0,-1], joins = [0]} {
    %c = conv(%x, %w)
    %r = relu(%c)
    yield %r
  }
  %z = relu(%y)
  return %z
})";

TEST(ForParts, PrintsAndParses) {
  const Graph graph = parse_graph(kImages, ops());
  verify(graph);
  const Node& loop = *graph.nodes()[0];
  EXPECT_EQ(loop.body->inputs()[0]->type.shape, (Shape{2, 4, 8, 8}));
  EXPECT_EQ(loop.body->inputs()[1]->type.shape, (Shape{8, 4, 1, 1}));
  EXPECT_EQ(loop.output()->type.shape, (Shape{6, 8, 8, 8}));
  const std::string text = print(graph);
  EXPECT_THAT(text, HasSubstr("%y = for_parts (%x, %w) {parts = 3, of = \"image\", cuts = [0,-1], joins = [0]} {"));
  const Graph back = parse_graph(text, ops());
  EXPECT_TRUE(equal(back, graph));
  EXPECT_EQ(print(back), text);
  EXPECT_EQ(structural_hash(back), structural_hash(graph));
  EXPECT_TRUE(equal(graph.clone(), graph));
}

TEST(ForParts, LoopsMayStandInLoopsAndHoldGroups) {
  const Graph graph = parse_graph(R"(graph (%x: f32[4,6]) {
    %y = for_parts "label" as "name" (%x as %a) {parts = 2, cuts = [0], joins = [0]} {
      %b = for_parts (%a) {parts = 3, cuts = [1], joins = [1]} {
        %g = fused "Relu" as "FusedRelu" (%a) { %r = relu(%a) yield %r }
        yield %g
      }
      yield %b
    }
    return %y })",
                                  ops());
  verify(graph);
  EXPECT_TRUE(equal(parse_graph(print(graph), ops()), graph));
  Graph plain = graph.clone();
  EXPECT_TRUE(expand_bodies(plain));  // the group; loops stay
  verify(plain);
  EXPECT_EQ(plain.nodes()[0]->op, for_parts_op());
  EXPECT_TRUE(plain.nodes()[0]->body->nodes()[0]->body->nodes()[0]->is("relu"));
}

TEST(ForParts, PartsAndNumbersCountInComparisons) {
  const Graph a = parse_graph(kImages, ops());
  std::string other = kImages;
  other.replace(other.find("parts = 3"), 9, "parts = 2");
  const Graph b = parse_graph(other, ops());
  EXPECT_FALSE(equal(a, b));
  EXPECT_NE(structural_hash(a), structural_hash(b));
}

TEST(ForParts, BoundDimensionsReachTheBody) {
  Graph graph = parse_graph(R"(graph (%x: f32[4,n]) {
    %y = for_parts (%x) {parts = 2, cuts = [0], joins = [0]} { %r = relu(%x) yield %r }
    return %y })",
                            ops());
  graph.bind_dimensions({{"n", 5}});
  verify(graph);
  EXPECT_EQ(graph.nodes()[0]->body->outputs()[0]->type.shape, (Shape{2, 5}));
  EXPECT_EQ(graph.outputs()[0]->type.shape, (Shape{4, 5}));
}

std::string message_of(const std::string& attributes, const std::string& type = "f32[6,4]") {
  try {
    parse_graph(
        "graph (%x: " + type + ") {\n  %y = for_parts (%x) " + attributes + " { %r = relu(%x) yield %r }\n return %y }",
        ops());
  } catch (const Error& error) {
    return error.diagnostic().text();
  }
  return "parsed";
}

TEST(ForParts, WhatDoesNotFitIsRefusedWithItsLine) {
  EXPECT_EQ(message_of("{parts = 3, cuts = [0], joins = [0]}"), "parsed");
  EXPECT_EQ(message_of("{parts = 1, cuts = [-1], joins = [1]}"), "parsed");
  EXPECT_THAT(message_of("{parts = 4, cuts = [0], joins = [0]}"), HasSubstr("axis 0 of f32[6,4] cannot be cut into 4"));
  EXPECT_THAT(message_of("{parts = 4, cuts = [0], joins = [0]}"), HasSubstr("line 2"));
  EXPECT_THAT(message_of("{parts = 2, cuts = [0], joins = [0]}", "f32[n,4]"), HasSubstr("cannot be cut"));
  EXPECT_THAT(message_of("{parts = 2, cuts = [2], joins = [0]}"), HasSubstr("has no axis 2"));
  EXPECT_THAT(message_of("{parts = 2, cuts = [-2], joins = [0]}"), HasSubstr("has no axis -2"));
  EXPECT_THAT(message_of("{parts = 2, cuts = [0], joins = [5]}"), HasSubstr("has no axis 5"));
  EXPECT_THAT(message_of("{parts = 0, cuts = [0], joins = [0]}"), HasSubstr("cannot run for 0 parts"));
  EXPECT_THAT(message_of("{parts = 2, cuts = [], joins = [0]}"), HasSubstr("names 0 cuts for 1 values"));
  EXPECT_THAT(message_of("{parts = 2, cuts = [0], joins = [0,0]}"), HasSubstr("names 2 joins for 1 values"));
  EXPECT_THAT(message_of("{parts = \"2\", cuts = [0], joins = [0]}"), HasSubstr("of another type"));
  EXPECT_THAT(message_of("{times = 2}"), HasSubstr("for_parts has the attributes parts, of, cuts and joins"));
  EXPECT_THAT(message_of(""), HasSubstr("expected"));
}

TEST(ForParts, VerifySeesABodyThatTakesSomethingElse) {
  Graph graph = parse_graph(kImages, ops());
  graph.nodes()[0]->body->inputs()[0]->type.shape[0] = Dim(3);
  try {
    verify(graph);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.diagnostic().message, HasSubstr("its body expects f32[3,4,8,8]"));
  }
}

TEST(ForParts, TensorsAreCutAndPutTogetherAlongAnyAxis) {
  Tensor whole(DType::f32, {4, 6, 2});
  for (int64_t i = 0; i < whole.elements(); ++i) whole.set_real(i, static_cast<double>(i));
  for (const int64_t axis : {0, 1, 2}) {
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < 2; ++i) parts.push_back(part_of(whole, axis, 2, i));
    EXPECT_EQ(parts[1].dim(static_cast<size_t>(axis)), whole.dim(static_cast<size_t>(axis)) / 2);
    EXPECT_TRUE(join_parts(parts, axis).same_bits(whole)) << axis;
  }
  EXPECT_EQ(part_of(whole, 1, 3, 1).real(0), 4);
  EXPECT_EQ(part_of(whole, 0, 2, 1).data(), static_cast<const char*>(whole.data()) + 2 * 6 * 2 * 4);
}

}  // namespace
}  // namespace opfuse
