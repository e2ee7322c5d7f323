// Linears of one value become one product whose columns their readers read, and only where that costs nothing. Values
// before and after are compared each time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fusion/explain/shaping_text.hpp"
#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ir/outline.hpp"
#include "shape/shaping_passes.hpp"

namespace opfuse {
namespace {

std::optional<Decline> always(const Node&) { return std::nullopt; }

struct Merged {
  Graph before, after;
  std::vector<ShapeVerdict> told;
  size_t products() const {
    Graph flat = after.clone();
    expand_bodies(flat);
    const auto is_product = [](const Node* node) { return node->is("matmul") || node->is("gemm"); };
    return static_cast<size_t>(std::count_if(flat.nodes().begin(), flat.nodes().end(), is_product));
  }
};

Merged merged(const std::string& text, const Legality& legal = always, const SymbolValues& symbols = {}) {
  Merged m;
  const Graph graph = prepared_text(text);
  m.before = apply(graph, make_plan(graph));
  m.after = m.before.clone();
  m.told = merge_siblings()(m.after, {.legal = legal});
  verify(m.after);
  const std::vector<Tensor> inputs = random_inputs(m.before, {.symbols = symbols});
  const std::vector<Tensor> want = interpret(m.before, inputs, {.symbols = symbols});
  const std::vector<Tensor> got = interpret(m.after, inputs, {.symbols = symbols});
  EXPECT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]).relative(), 1e-12);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(m.after.outputs()[i]->name, m.before.outputs()[i]->name);
  return m;
}

std::string code(const ShapeVerdict& s) { return s.refused ? s.refused->code : "merged"; }
std::vector<std::string> codes(const Merged& m) {
  std::vector<std::string> all;
  for (const ShapeVerdict& s : m.told) all.push_back(code(s));
  return all;
}

TEST(Siblings, RunAsOneProduct) {
  const Merged m = merged(R"(graph (%x: f32[3,4,8]) {
    %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,10] %c = const rand<3> : f32[6] %d = const rand<4> : f32[1,1,10]
    %g = matmul(%x, %a) %h = add(%g, %c) %u = matmul(%x, %b) %v = add(%d, %u)
    %s = softmax(%h) %t = softmax(%v) return %s, %t })");
  ASSERT_THAT(codes(m), testing::ElementsAre("merged"));
  EXPECT_THAT(m.told[0].nodes, testing::ElementsAre("h", "v"));
  EXPECT_EQ(m.products(), 1u);
  const Node* product = m.after.nodes().front();
  EXPECT_THAT(product->label, testing::MatchesRegex("FusedLinear__[0-9]\\+FusedLinear__[0-9]"));
  EXPECT_EQ(product->output()->type.shape.text(), "[3,4,16]");
}

TEST(Siblings, ATransposedGemmAndOneWithoutBiasMeet) {
  const Merged m = merged(R"(graph (%x: f32[5,8]) {
    %a = const rand<1> : f32[6,8] %b = const rand<2> : f32[8,3] %c = const rand<3> : f32[6]
    %g = gemm(%x, %a, %c) {transB = true} %u = matmul(%x, %b) %s = softmax(%g) %t = softmax(%u) return %s, %t })");
  EXPECT_THAT(codes(m), testing::ElementsAre("merged"));
  EXPECT_EQ(m.products(), 1u);
}

TEST(Siblings, OneOfWhichFeedsOthers) {
  const Merged m = merged(R"(graph (%z: f32[40,8], %x: f32[4,8]) { %l = softmax(%z) %n = softmax(%l)
    %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6] %c = const rand<3> : f32[6,5] %d = const rand<4> : f32[6,5] %g = matmul(%x, %a) %u = matmul(%x, %b) %t = softmax(%u)
    %p = matmul(%g, %c) %q = matmul(%g, %d) %r = softmax(%p) %s = softmax(%q) return %n, %t, %r, %s })");
  EXPECT_THAT(codes(m), testing::ElementsAre("merged", "merged"));
  EXPECT_EQ(m.products(), 2u);
}

TEST(Siblings, OpenDimensionsAreNoHindrance) {
  const Merged m = merged(R"(graph (%x: f32[n,8]) {
    %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
    %g = matmul(%x, %a) %u = matmul(%x, %b) %s = softmax(%g) %t = softmax(%u) return %s, %t })",
                          always, {{"n", 5}});
  EXPECT_THAT(codes(m), testing::ElementsAre("merged"));
}

TEST(Siblings, OfAnAttentionAreItsInProjection) {
  const Merged m = merged(R"(graph (%x: f32[2,5,8]) {
    %a = const rand<1> : f32[8,8] %b = const rand<2> : f32[8,8] %c = const rand<3> : f32[8,8] %e = const rand<4> : f32[8]
    %l = const dense<2,5,2,4> : i64[4] %i = const splat<0.5> : f32[] %o = const dense<2,5,8> : i64[3]
    %q0 = matmul(%x, %a) %q1 = add(%q0, %e) %q2 = reshape(%q1, %l) %q = transpose(%q2) {perm = [0,2,1,3]}
    %k0 = matmul(%x, %b) %k1 = reshape(%k0, %l) %k = transpose(%k1) {perm = [0,2,3,1]}
    %v0 = matmul(%x, %c) %v1 = reshape(%v0, %l) %v = transpose(%v1) {perm = [0,2,1,3]}
    %s = matmul(%q, %k) %t = mul(%s, %i) %w = softmax(%t) %r = matmul(%w, %v)
    %p = transpose(%r) {perm = [0,2,1,3]} %y = reshape(%p, %o) return %y })");
  ASSERT_THAT(codes(m), testing::ElementsAre("merged"));
  EXPECT_EQ(m.told[0].nodes.size(), 3u);
  EXPECT_EQ(m.products(), 3u);  // the projection and the two of attention
  EXPECT_EQ(m.after.nodes().front()->label.rfind("FusedMHAInProjection__", 0), 0u);
}

/// Two heads of 4 with rotary embeddings, then attention; `more` stands at its end. %n has the peak of memory.
std::string turned(const std::string& more) {
  std::string text = R"(graph (%z: f32[99,8], %x: f32[2,5,8]) { %m = softmax(%z) %n = softmax(%m)
    %a = const rand<1> : f32[8,8] %b = const rand<2> : f32[8,8] %c = const rand<3> : f32[8,8] %cos = const rand<4> : f32[5,4] %sin = const rand<5> : f32[5,4]
    %l = const dense<2,5,2,4> : i64[4] %i = const splat<0.5> : f32[]
    %q0 = matmul(%x, %a) %q1 = reshape(%q0, %l) %qr = transpose(%q1) {perm = [0,2,1,3]}
    %k0 = matmul(%x, %b) %k1 = reshape(%k0, %l) %kr = transpose(%k1) {perm = [0,2,1,3]}
    %v0 = matmul(%x, %c) %v1 = reshape(%v0, %l) %v = transpose(%v1) {perm = [0,2,1,3]})";
  for (const std::string n : {"q", "k"})
    text += " %" + n + "a, %" + n + "b = split(%" + n + "r) {axis = -1, num_outputs = 2} %" + n + "c = neg(%" + n +
            "b) %" + n + "d = concat(%" + n + "c, %" + n + "a) {axis = -1} %" + n + "e = mul(%" + n + "r, %cos) %" + n +
            "f = mul(%" + n + "d, %sin) %" + n + " = add(%" + n + "e, %" + n + "f)";
  return text + R"( %kt = transpose(%k) {perm = [0,1,3,2]} %s = matmul(%q, %kt) %t = mul(%s, %i) %w = softmax(%t)
    %r = matmul(%w, %v))" +
         more + " }";
}

TEST(Siblings, BehindWhichRotaryEmbeddingsStandAreStillColumns) {
  const Merged m = merged(turned(" return %n, %r"));
  ASSERT_THAT(codes(m), testing::ElementsAre("merged"));
  EXPECT_EQ(m.told[0].nodes.size(), 3u);
}

TEST(Siblings, OfAModuleGoTogetherOrNotAtAll) {
  const Merged m = merged(turned(" return %n, %r, %v0"));
  EXPECT_THAT(codes(m), testing::UnorderedElementsAre("graph_output", "module"));
  EXPECT_EQ(m.products(), 5u);
}

TEST(Siblings, StayApartWhereAReaderNeedsWholeRows) {
  const Merged m = merged(R"(graph (%x: f32[4,8]) {
    %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6] %l = const dense<8,3> : i64[2]
    %g = matmul(%x, %a) %u = matmul(%x, %b) %r = reshape(%g, %l) %s = softmax(%r) %t = softmax(%u) return %s, %t })");
  EXPECT_THAT(codes(m), testing::ElementsAre("moves_elements", "no_sibling"));
  EXPECT_EQ(m.products(), 2u);
}

TEST(Siblings, StayApartBehindDequantizeLinear) {
  const Merged m = merged(R"(graph (%x: f32[4,8]) {
    %a = const rand<1> : i8[8,6] %b = const rand<2> : i8[8,6] %k = const splat<0.01> : f32[] %l = const splat<0.02> : f32[]
    %c = dequantize_linear(%a, %k) %d = dequantize_linear(%b, %l)
    %g = matmul(%x, %c) %u = matmul(%x, %d) %s = softmax(%g) %t = softmax(%u) return %s, %t })");
  EXPECT_THAT(codes(m), testing::ElementsAre("dequantized", "dequantized"));
  EXPECT_THAT(m.told[0].nodes, testing::ElementsAre("g"));
  EXPECT_EQ(m.products(), 2u);
}

TEST(Siblings, StayApartWhereAResultIsAnOutputOfTheGraph) {
  const Merged m = merged(R"(graph (%x: f32[4,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
    %g = matmul(%x, %a) %u = matmul(%x, %b) return %g, %u })");
  EXPECT_THAT(codes(m), testing::ElementsAre("graph_output", "graph_output"));
  EXPECT_EQ(m.products(), 2u);
}

TEST(Siblings, StayApartWhereMoreFollowsInTheGroup) {
  const Merged m = merged(R"(graph (%x: f32[4,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
    %g = matmul(%x, %a) %h = relu(%g) %u = matmul(%x, %b) %t = softmax(%u) %s = softmax(%h) return %s, %t })");
  EXPECT_THAT(codes(m), testing::ElementsAre("epilogue", "no_sibling"));
  EXPECT_THAT(m.told[0].nodes, testing::ElementsAre("g"));
}

TEST(Siblings, StayApartWithComputedWeightsOrOtherSources) {
  EXPECT_TRUE(merged(R"(graph (%x: f32[4,8], %a: f32[8,6]) { %b = const rand<2> : f32[8,6]
    %g = matmul(%x, %a) %u = matmul(%x, %b) %s = softmax(%g) %t = softmax(%u) return %s, %t })")
                  .told.empty());
  EXPECT_TRUE(merged(R"(graph (%x: f32[4,8], %z: f32[4,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
    %g = matmul(%x, %a) %u = matmul(%z, %b) %s = softmax(%g) %t = softmax(%u) return %s, %t })")
                  .told.empty());
}

TEST(Siblings, ABiasOfColumnsIsNoBias) {
  const Merged m = merged(R"(graph (%x: f32[6,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
    %c = const rand<3> : f32[6,1] %g = matmul(%x, %a) %h = add(%g, %c) %u = matmul(%x, %b) %s = softmax(%h)
    %t = softmax(%u) return %s, %t })");
  EXPECT_EQ(m.products(), 2u);
}

TEST(Siblings, DoNotWaitForReadersFarBehind) {
  // Each pair of Linears is read at once; all of them together would hold sixteen results until the last reader.
  std::string text = "graph (%x: f32[64,8], %y0: f32[64,64]) {";
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    text += " %a" + n + " = const rand<1> : f32[8,64] %b" + n + " = const rand<2> : f32[8,64] %k" + n +
            " = matmul(%x, %a" + n + ") %v" + n + " = matmul(%x, %b" + n + ") %s" + n + " = softmax(%k" + n + ") %t" +
            n + " = softmax(%v" + n + ") %p" + n + " = matmul(%s" + n + ", %t" + n + ") %y" + next + " = matmul(%p" +
            n + ", %y" + n + ")";
  }
  const Merged m = merged(text + " return %y8 }");
  EXPECT_GE(m.told.size(), 4u);
  EXPECT_THAT(codes(m), testing::Contains("merged"));
  EXPECT_LT(m.told[0].nodes.size(), 8u);
}

TEST(Siblings, StayApartWhereTheProductIsNoKernel) {
  const Legality narrow = [](const Node& node) -> std::optional<Decline> {
    const Shape& y = node.output()->type.shape;
    return y.rank() == 2 && y[1] == Dim(12) ? std::optional(Decline{"too_wide", "twelve columns", {}}) : std::nullopt;
  };
  const Merged m = merged(R"(graph (%x: f32[4,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
    %g = matmul(%x, %a) %u = matmul(%x, %b) %s = softmax(%g) %t = softmax(%u) return %s, %t })",
                          narrow);
  EXPECT_THAT(codes(m), testing::ElementsAre("not_generated"));
  EXPECT_TRUE(equal(m.before, m.after));
}

TEST(Siblings, AreToldInLines) {
  const std::vector<std::string> lines = shaping_lines(
      {{.pass = "merge-siblings", .nodes = {"q", "k", "v"}, .value = "x"},
       {.pass = "merge-siblings", .nodes = {"g"}, .value = "x", .refused = Decline{"epilogue", "more follows", {}}}});
  EXPECT_THAT(lines, testing::ElementsAre("3 Linears of common operands run as 1 product",
                                          "Linear g of \"x\" not merged with siblings, epilogue: more follows"));
}

}  // namespace
}  // namespace opfuse
