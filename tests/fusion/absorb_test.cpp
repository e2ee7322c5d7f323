// Movements of elements around attention: what its group takes in, what stays outside, and that values stay.
#include <gtest/gtest.h>

#include <algorithm>

#include "fusion/explain/shaping_text.hpp"
#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "shape/shaping_passes.hpp"

namespace opfuse {
namespace {

const Legality kEverything = [](const Node&) { return std::optional<Decline>(); };

/// batch 2, 5 tokens, 2 heads of 4; `after` stands behind the attention's result %y.
std::string attention_of(const std::string& after) {
  return R"(graph (%x: f32[2,5,8], %mask: f32[2,1,1,5]) {
    %wq = const rand<1> : f32[8,8] %wk = const rand<2> : f32[8,8] %wv = const rand<3> : f32[8,8] %root = const splat<2> : f32[]
    %heads = const dense<2,5,2,4> : i64[4] %flat = const dense<2,5,8> : i64[3] %wo = const rand<4> : f32[8,8]
    %qm = matmul(%x, %wq) %qr = reshape(%qm, %heads) %q = transpose(%qr) {perm = [0,2,1,3]}
    %km = matmul(%x, %wk) %kr = reshape(%km, %heads) %k = transpose(%kr) {perm = [0,2,3,1]}
    %vm = matmul(%x, %wv) %vr = reshape(%vm, %heads) %v = transpose(%vr) {perm = [0,2,1,3]}
    %s = matmul(%q, %k) %d = div(%s, %root) %e = add(%d, %mask) %p = softmax(%e) %y = matmul(%p, %v)
    )" + after +
         " }";
}

const std::string kMerged =
    "%t = transpose(%y) {perm = [0,2,1,3]} %m = reshape(%t, %flat) %o = matmul(%m, %wo) return %o";

struct Absorbed {
  Graph original, fused;
  std::vector<std::string> notes;
  size_t outside = 0;  ///< reshapes and transposes that stayed nodes of their own
};

Absorbed absorb(const std::string& text, const Legality& legal) {
  Absorbed a;
  a.original = parse_graph(text, ops());
  const Graph graph = prepared_text(text);
  a.fused = apply(graph, make_plan(graph));
  a.notes = shaping_lines(absorb_movements()(a.fused, {.legal = legal}));
  verify(a.fused);
  for (const Node* node : a.fused.nodes()) a.outside += node->is("transpose") || node->is("reshape");
  return a;
}

void expect_same_values(const Absorbed& a) {
  const std::vector<Tensor> inputs = random_inputs(a.original);
  const std::vector<Tensor> want = interpret(a.original, inputs), got = interpret(a.fused, inputs);
  ASSERT_EQ(got.size(), want.size());
  for (size_t o = 0; o < want.size(); ++o) {
    const Difference d = difference(got[o], want[o]);
    EXPECT_LE(d.max_abs, 1e-12 * d.max_reference);
  }
}

TEST(Absorb, HeadsAreCutAndMergedInsideTheGroup) {
  const Absorbed a = absorb(attention_of(kMerged), kEverything);
  EXPECT_EQ(a.outside, 0u) << print(a.fused);
  ASSERT_EQ(a.notes.size(), 1u);
  EXPECT_EQ(a.notes[0], "1 attention group read and store through 8 movements of elements");
  const auto& nodes = a.fused.nodes();
  const auto group =
      std::find_if(nodes.begin(), nodes.end(), [](const Node* n) { return n->pattern == "ScaledDotProductAttention"; });
  ASSERT_NE(group, nodes.end());
  EXPECT_EQ((*group)->output()->type.shape, Shape({2, 5, 8}));
  EXPECT_EQ((*group)->label.rfind("FusedScaledDotProductAttention__", 0), 0u);
  expect_same_values(a);
}

TEST(Absorb, AResultThatOthersReadIsNotMoved) {
  const Absorbed a =
      absorb(attention_of("%t = transpose(%y) {perm = [0,2,1,3]} %m = reshape(%t, %flat) %r = relu(%y) return %m, %r"),
             kEverything);
  EXPECT_EQ(a.outside, 2u) << print(a.fused);
  expect_same_values(a);
}

TEST(Absorb, AnOutputOfTheGraphIsNotMoved) {
  const Absorbed a = absorb(attention_of("%t = transpose(%y) {perm = [0,2,1,3]} return %y, %t"), kEverything);
  EXPECT_EQ(a.outside, 1u) << print(a.fused);
  expect_same_values(a);
}

TEST(Absorb, AMovementThatOthersReadStaysForThem) {
  const Absorbed a = absorb(attention_of("%n = neg(%vr) return %y, %n"), kEverything);
  EXPECT_EQ(a.outside, 1u) << print(a.fused);
  expect_same_values(a);
}

TEST(Absorb, GroupsThatAreNoKernelStayAsTheyAre) {
  const Absorbed a = absorb(attention_of(kMerged), [](const Node&) {
    return std::optional(Decline{"no", "not here", {}});
  });
  EXPECT_EQ(a.outside, 8u);
  EXPECT_TRUE(a.notes.empty());
}

TEST(Absorb, TakesOnlyWhatKeepsTheGroupAKernel) {
  const Absorbed a = absorb(attention_of(kMerged), [](const Node& node) -> std::optional<Decline> {
    for (const Node* n : node.body->nodes())
      if (n->is("reshape")) return Decline{"no", "no reshapes here", {}};
    return std::nullopt;
  });
  EXPECT_EQ(a.outside, 4u) << print(a.fused);
  expect_same_values(a);
}

TEST(Absorb, IndicesKnownOnlyAtRunTimeStayOutside) {
  const std::string text = R"(graph (%q: f32[2,5,4], %k: f32[2,4,5], %v: f32[2,5,4], %i: i64[2]) {
    %g = gather(%q, %i) {axis = 0} %s = matmul(%g, %k) %p = softmax(%s) %y = matmul(%p, %v) return %y })";
  const Absorbed a = absorb(text, kEverything);
  EXPECT_TRUE(a.notes.empty());
  EXPECT_TRUE(
      std::any_of(a.fused.nodes().begin(), a.fused.nodes().end(), [](const Node* n) { return n->is("gather"); }));
}

/// A rotary embedding of the heads of %x; what reads it, %y, is not attention.
const std::string kTurned = R"(graph (%x: f32[2,5,8], %cos: f32[5,4], %sin: f32[5,4]) {
    %heads = const dense<2,5,2,4> : i64[4] %r = reshape(%x, %heads) %t = transpose(%r) {perm = [0,2,1,3]}
    %a, %b = split(%t) {axis = -1, num_outputs = 2} %c = neg(%b) %d = concat(%c, %a) {axis = -1}
    %e = mul(%t, %cos) %f = mul(%d, %sin) %y = add(%e, %f) )";

TEST(Absorb, ARotaryEmbeddingReadsHeadsWhereTheyAre) {
  const Absorbed a = absorb(kTurned + "%s = softmax(%y) return %s }", kEverything);
  EXPECT_EQ(a.outside, 0u) << print(a.fused);
  ASSERT_EQ(a.notes.size(), 1u);
  EXPECT_EQ(a.notes[0], "1 rotary embedding read through 2 movements of elements");
  expect_same_values(a);
}

TEST(Absorb, WhatIsBehindARotaryEmbeddingStays) {
  const Absorbed a = absorb(kTurned + "%z = transpose(%y) {perm = [0,1,3,2]} return %z }", kEverything);
  EXPECT_EQ(a.outside, 1u) << print(a.fused);
  expect_same_values(a);
}

TEST(Absorb, ARotaryEmbeddingThatIsNoKernelStaysAsItIs) {
  const Absorbed a = absorb(kTurned + "return %y }", [](const Node&) {
    return std::optional(Decline{"no", "not here", {}});
  });
  EXPECT_EQ(a.outside, 2u);
  EXPECT_TRUE(a.notes.empty());
}

}  // namespace
}  // namespace opfuse
