// Loops over parts as copies: the graph they stand for, and the same values before and after.
#include "region/unroll_parts.hpp"

#include <gtest/gtest.h>

#include "ir/for_parts.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

void unroll(Graph& graph) {
  unroll_parts(graph);
  graph.remove_dead_nodes();
}

TEST(UnrollParts, ImagesBecomeCopiesBetweenSplitAndConcat) {
  testing::expect_rewrite(unroll,
                          R"(graph (%x: f32[2,3]) {
    %y = for_parts (%x) {parts = 2, of = "image", cuts = [0], joins = [0]} { %s = softmax(%x) {axis = 1} yield %s }
    return %y })",
                          R"(graph (%x: f32[2,3]) {
    %a, %b = split(%x) {split = [1,1]}
    %s = softmax(%a) {axis = 1}
    %t = softmax(%b) {axis = 1}
    %y = concat(%s, %t) {axis = 0}
    return %y })");
}

TEST(UnrollParts, ConstantsAreCutAndOthersShared) {
  testing::expect_rewrite(unroll,
                          R"(graph (%x: f32[2,3]) {
    %w = const dense<1,2,3,4> : f32[4,1]
    %v = const dense<5,6,7> : f32[3]
    %y = for_parts (%x as %a, %w, %v) {parts = 2, cuts = [-1,0,-1], joins = [1]} {
      %m = mul(%a, %w)
      %n = add(%m, %v)
      yield %n
    }
    return %y })",
                          R"(graph (%x: f32[2,3]) {
    %w0 = const dense<1,2> : f32[2,1]
    %w1 = const dense<3,4> : f32[2,1]
    %v = const dense<5,6,7> : f32[3]
    %m0 = mul(%x, %w0)
    %n0 = add(%m0, %v)
    %m1 = mul(%x, %w1)
    %n1 = add(%m1, %v)
    %y = concat(%n0, %n1) {axis = 1}
    return %y })");
}

constexpr const char* kNested = R"(graph (%x: f32[4,6]) {
    %y = for_parts (%x as %a) {parts = 2, of = "image", cuts = [0], joins = [0]} {
      %b = for_parts (%a) {parts = 3, cuts = [1], joins = [1]} { %r = relu(%a) yield %r }
      %c = softmax(%b) {axis = 1}
      yield %c
    }
    %z = relu(%y)
    return %z })";

TEST(UnrollParts, LoopsInLoopsToo) {
  Graph graph = parse_graph(kNested, ops());
  const Graph before = graph.clone();
  unroll_parts(graph);
  verify(graph);
  testing::expect_same_values(before, graph, {.tolerance = 0});
  for (const Node* node : graph.nodes()) EXPECT_NE(node->op, for_parts_op());
  EXPECT_TRUE(graph.find_value("r[2:4][image 1]"));
}

TEST(UnrollParts, WhatLiesPartByPartMayStay) {
  Graph graph = parse_graph(kNested, ops());
  EXPECT_FALSE(lies_part_by_part(*graph.nodes()[0])) << "a loop is in it";
  const Graph before = graph.clone();
  unroll_parts(graph, true);
  verify(graph);
  ASSERT_EQ(graph.nodes()[0]->op, for_parts_op());
  EXPECT_TRUE(lies_part_by_part(*graph.nodes()[0]));
  for (const Node* node : graph.nodes()[0]->body->nodes()) EXPECT_NE(node->op, for_parts_op());
  testing::expect_same_values(before, graph, {.tolerance = 0});
}

bool stays(const std::string& loop) {
  return lies_part_by_part(
      *parse_graph("graph (%x: f32[4,6], %o: f32[4,6]) { %w = const rand<1> : f32[4,6] %y = " + loop + " return %y }",
                   ops())
           .nodes()[0]);
}

TEST(UnrollParts, OtherAxesConstantsAndUnmadeResultsDoNotLiePartByPart) {
  EXPECT_TRUE(stays("for_parts (%x, %o) {parts = 2, cuts = [0,0], joins = [0]} { %a = add(%x, %o) yield %a }"));
  EXPECT_FALSE(stays("for_parts (%x, %o) {parts = 2, cuts = [1,1], joins = [1]} { %a = add(%x, %o) yield %a }"));
  EXPECT_FALSE(stays("for_parts (%x, %o) {parts = 2, cuts = [0,0], joins = [1]} { %a = add(%x, %o) yield %a }"));
  EXPECT_FALSE(stays("for_parts (%x, %w) {parts = 2, cuts = [0,0], joins = [0]} { %a = add(%x, %w) yield %a }"));
  EXPECT_FALSE(stays("for_parts (%x) {parts = 2, cuts = [0], joins = [0]} { yield %x }"));
}

}  // namespace
}  // namespace opfuse
