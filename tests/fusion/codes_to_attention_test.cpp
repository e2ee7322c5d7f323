// Operands of attention that are rounded to one step: how often they are rounded, where codes begin, and that no value
// changes.
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

/// A pair of Q and DQ of `from`, called `to`.
std::string pair(const std::string& from, const std::string& to, const std::string& step = "%s, %z") {
  return "%" + to + "_q = quantize_linear(%" + from + ", " + step + ") %" + to + " = dequantize_linear(%" + to +
         "_q, " + step + ")\n";
}

/// batch 2, 5 tokens, 2 heads of 4; queries, keys and values as `query`, `key` and `value` make %q, %k, %v of the
/// products %qm, %km, %vm. Scores and weights are rounded too.
std::string attention_of(const std::string& query, const std::string& key, const std::string& value,
                         const std::string& results = "%y") {
  return R"(graph (%x: f32[2,5,8]) {
    %wq = const rand<1> : f32[8,8] %wk = const rand<2> : f32[8,8] %wv = const rand<3> : f32[8,8] %root = const splat<2> : f32[]
    %s = const splat<0.05> : f32[] %z = const splat<117> : u8[] %s2 = const splat<0.03> : f32[] %z2 = const splat<3> : i8[]
    %t = const splat<0.0039> : f32[] %n = const splat<0> : u8[] %heads = const dense<2,5,2,4> : i64[4]
    %qm = matmul(%x, %wq) %km = matmul(%x, %wk) %vm = matmul(%x, %wv)
    )" + query +
         key + value + R"(%m = matmul(%q, %k) %d = div(%m, %root) )" + pair("d", "e") + R"(%p = softmax(%e) )" +
         pair("p", "w", "%t, %n") + "%y = matmul(%w, %v)\n return " + results + " }";
}

/// Rounded before, between and behind the movements.
std::string thrice(const std::string& of, const std::string& to, const std::string& perm) {
  return pair(of, of + "1") + "%" + of + "2 = reshape(%" + of + "1, %heads) " + pair(of + "2", of + "3") + "%" + of +
         "4 = transpose(%" + of + "3) {perm = " + perm + "}\n" + pair(of + "4", to);
}

std::string once(const std::string& of, const std::string& to, const std::string& perm) {
  return "%" + of + "1 = reshape(%" + of + ", %heads) %" + of + "2 = transpose(%" + of + "1) {perm = " + perm + "}\n" +
         pair(of + "2", to);
}

struct Rewritten {
  Graph original, fused;
  std::vector<std::string> notes;
  size_t maps = 0;    ///< groups of roundings and movements that are left
  size_t stored = 0;  ///< results of groups that are codes
};

Rewritten rewrite(const std::string& text, const Legality& legal = kEverything) {
  Rewritten r;
  r.original = parse_graph(text, ops());
  const Graph graph = prepared_text(text);
  r.fused = apply(graph, make_plan(graph));
  r.notes = shaping_lines(codes_to_attention()(r.fused, {.legal = legal}));
  verify(r.fused);
  for (const Node* node : r.fused.nodes()) {
    r.maps += node->pattern == "map";
    for (const Value* v : node->outputs) r.stored += node->op == fused_op() && !is_float(v->type.dtype);
  }
  return r;
}

void expect_same_bits(const Rewritten& r) {
  const std::vector<Tensor> inputs = random_inputs(r.original);
  const std::vector<Tensor> want = interpret(r.original, inputs), got = interpret(r.fused, inputs);
  ASSERT_EQ(got.size(), want.size());
  for (size_t o = 0; o < want.size(); ++o) EXPECT_TRUE(got[o].same_bits(want[o])) << print(r.fused);
}

const std::string kQ = thrice("qm", "q", "[0,2,1,3]"), kK = thrice("km", "k", "[0,2,3,1]"),
                  kV = thrice("vm", "v", "[0,2,1,3]");

TEST(CodesToAttention, RoundedOnceWhereverTheRoundingsStand) {
  const Rewritten r = rewrite(attention_of(kQ, kK, kV));
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_EQ(r.notes[0], "1 attention group read 3 operands as codes");
  EXPECT_EQ(r.maps, 0u) << print(r.fused);
  EXPECT_EQ(r.stored, 3u) << "by the products: " << print(r.fused);
  expect_same_bits(r);
}

TEST(CodesToAttention, MovementsInFrontOfTheRounding) {
  const Rewritten r =
      rewrite(attention_of(once("qm", "q", "[0,2,1,3]"), once("km", "k", "[0,2,3,1]"), once("vm", "v", "[0,2,1,3]")));
  EXPECT_EQ(r.maps, 0u) << print(r.fused);
  EXPECT_EQ(r.stored, 3u) << print(r.fused);
  expect_same_bits(r);
}

TEST(CodesToAttention, AnotherStepStays) {
  const std::string other = pair("qm", "qm1", "%s2, %z2") +
                            "%qm2 = reshape(%qm1, %heads) %qm3 = transpose(%qm2) {perm = [0,2,1,3]}\n" +
                            pair("qm3", "q");
  const Rewritten r = rewrite(attention_of(other, kK, kV));
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_EQ(r.notes[0], "1 attention group read 3 operands as codes");
  EXPECT_EQ(r.maps, 1u) << print(r.fused);
  EXPECT_EQ(r.stored, 3u) << print(r.fused);
  expect_same_bits(r);
}

TEST(CodesToAttention, WhatOthersReadStaysForThem) {
  const Rewritten read = rewrite(attention_of(kQ, kK, kV, "%y, %q, %km"));
  expect_same_bits(read);
  const Rewritten moved = rewrite(attention_of(kQ, kK, kV, "%y, %vm4, %vm2"));
  expect_same_bits(moved);
}

TEST(CodesToAttention, WithoutKernelsNothingChanges) {
  const auto attention_of_codes = [](const Node& node) -> std::optional<Decline> {
    if (node.pattern != "ScaledDotProductAttention" || node.body->nodes().size() == 1) return std::nullopt;
    return Decline{"no", "not here", {}};
  };
  const Rewritten floats = rewrite(attention_of(kQ, kK, kV), attention_of_codes);
  EXPECT_TRUE(floats.notes.empty());
  EXPECT_EQ(floats.maps, 9u) << print(floats.fused);
  expect_same_bits(floats);
  const Rewritten none = rewrite(attention_of(kQ, kK, kV), [](const Node&) {
    return std::optional(Decline{"no", "not here", {}});
  });
  EXPECT_TRUE(none.notes.empty());
  EXPECT_EQ(none.maps, 9u) << print(none.fused);
  expect_same_bits(none);
}

}  // namespace
}  // namespace opfuse
