// Models that are quantised already: the same modules as their float form, pairs and scales kept, and a reason where a
// pair is in the way.
#include <gtest/gtest.h>

#include "fusion/explain/compounds.hpp"
#include "fusion/explain/explain.hpp"
#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "onnx/write.hpp"
#include "passes/fold_dequantized.hpp"
#include "shape/shaping_passes.hpp"

namespace opfuse {
namespace {

using namespace std::string_literals;

/// conv -> relu -> conv -> add -> relu -> linear, `pair(name)` between any two of them.
std::string net(const std::function<std::string(std::string)>& pair) {
  const bool quantised = !pair("v").empty();
  const std::string w =
      quantised ? "%wq = dequantize_linear(%wi, %ws, %wz) {axis = 0}\n" : "%wq = const rand<3> : f32[4,4,3,3]\n";
  const std::string l = quantised ? "%lq = dequantize_linear(%li, %s)\n" : "%lq = const rand<4> : f32[8,8]\n";
  const auto at = [&](const std::string& v) { return quantised ? "%" + v + "_d" : "%" + v; };
  return "graph (%x: f32[1,4,8,8]) {\n"
         "%wi = const rand<1> : i8[4,4,3,3]\n%ws = const splat<0.01> : f32[4]\n%wz = const splat<0> : i8[4]\n"
         "%li = const rand<2> : i8[8,8]\n%s = const splat<0.05> : f32[]\n%z = const splat<0> : i8[]\n" +
         w + l + pair("x") + "%c = conv(" + at("x") + ", %wq) {pads=[1,1,1,1]}\n%r = relu(%c)\n" + pair("r") +
         "%e = conv(" + at("r") + ", %wq) {pads=[1,1,1,1]}\n" + pair("e") + "%a = add(" + at("e") + ", " + at("x") +
         ")\n%u = relu(%a)\n" + pair("u") + "%m = matmul(" + at("u") + ", %lq)\n" + pair("m") + "%y = gelu(" + at("m") +
         ")\nreturn %y }";
}

std::string no_pair(const std::string&) { return ""; }
std::string pair(const std::string& v) {
  return "%" + v + "_q = quantize_linear(%" + v + ", %s, %z) @\"Q_" + v + "\"\n%" + v + "_d = dequantize_linear(%" + v +
         "_q, %s, %z) @\"DQ_" + v + "\"\n";
}

TEST(Qdq, AQuantisedModelHasTheModulesOfItsFloatForm) {
  const Graph plain = prepared_text(net(no_pair)), quantised = prepared_text(net(pair));
  const auto counts = make_plan(plain).module_counts();
  EXPECT_EQ(counts,
            (std::map<std::string, int>{{"FusedConvBNReLU", 1}, {"FusedConvBNAddReLU", 1}, {"FusedLinearReLU", 1}}));
  const FusionPlan plan = make_plan(quantised);
  EXPECT_EQ(plan.module_counts(), counts) << print(quantised);
  const Graph fused = apply(quantised, plan);
  const std::vector<Tensor> inputs = random_inputs(quantised);
  EXPECT_TRUE(interpret(fused, inputs)[0].same_bits(interpret(quantised, inputs)[0]));
}

TEST(Qdq, APairInsideAGroupIsNotedAndKept) {
  const Graph graph = prepared_text(net(pair));
  const FusionPlan plan = make_plan(graph);
  bool noted = false;
  for (const Candidate* c : plan.applied())
    for (const std::string& note : c->notes) noted |= note.find("Q_e") != std::string::npos;
  EXPECT_TRUE(noted);
  const Graph back = read_onnx_bytes(write_onnx_bytes(apply(graph, plan), {.functions = true}));
  int pairs = 0, weights = 0;
  for (const Node* n : back.nodes()) {
    pairs += n->is("quantize_linear");
    weights += n->is("dequantize_linear") && n->input(0)->is_constant();
  }
  EXPECT_EQ(pairs, 5);
  EXPECT_EQ(weights, 2) << "quantised weights stay quantised in the file";
}

std::string blocked(const std::string& between) {
  return "graph (%x: f32[1,4,8,8]) {\n%w = const rand<1> : f32[4,4,3,3]\n%s = const splat<0.05> : f32[]\n"
         "%t = const splat<0.06> : f32[]\n%z = const splat<0> : i8[]\n"
         "%c = conv(%x, %w) {pads=[1,1,1,1]} @\"conv\"\n%q = quantize_linear(%c, %s, %z) @\"Q\"\n" +
         between + "return %y }";
}

std::string why(const std::string& text) {
  const Graph graph = prepared_text(text);
  const FusionPlan plan = make_plan(graph);
  EXPECT_FALSE(plan.module_counts().contains("FusedConvBNReLU"));
  for (const Remark& r : missed(graph, plan))
    if (r.code == "qdq_pair") return r.rule + ": " + r.message;
  return "";
}

/// Self-attention as ONNX Runtime's quantiser leaves it: a pair behind every operator, constants behind
/// DequantizeLinear. `z`: the zero point with which the queries are dequantised.
std::string attention(const std::string& z) {
  std::string text =
      "graph (%x: f32[2,5,8]) {\n%s = const splat<0.05> : f32[]\n%z = const splat<0> : i8[]\n%one = const splat<1> : "
      "i8[]\n%heads = const dense<2,5,2,4> : i64[4]\n%rest = const dense<2,5,8> : i64[3]\n%root = const splat<2> : "
      "f32[]\n" +
      pair("x");
  for (const std::string r : {"q", "k", "v"})
    text += "%w" + r + "i = const rand<" + std::to_string(1 + "qkv"s.find(r)) + "> : i8[8,8]\n%b" + r +
            "i = const rand<4> : i8[8]\n%w" + r + " = dequantize_linear(%w" + r + "i, %s)\n%b" + r +
            " = dequantize_linear(%b" + r + "i, %s)\n%" + r + "m = matmul(%x_d, %w" + r + ")\n" + pair(r + "m") + "%" +
            r + "a = add(%" + r + "m_d, %b" + r + ")\n" + pair(r + "a") + "%" + r + "r = reshape(%" + r +
            "a_d, %heads)\n" + pair(r + "r") + "%" + r + "t = transpose(%" + r + "r_d) {perm = [0,2," +
            (r == "k" ? "3,1" : "1,3") + "]}\n%" + r + "t_q = quantize_linear(%" + r + "t, %s, %z)\n%" + r +
            "t_d = dequantize_linear(%" + r + "t_q, %s, %" + (r == "q" ? z : "z") + ")\n";
  return text + "%d = matmul(%qt_d, %kt_d)\n" + pair("d") + "%e = div(%d_d, %root)\n" + pair("e") +
         "%p = softmax(%e_d)\n" + pair("p") + "%c = matmul(%p_d, %vt_d)\n" + pair("c") +
         "%o = transpose(%c_d) {perm = [0,2,1,3]}\n" + pair("o") + "%y = reshape(%o_d, %rest)\nreturn %y }";
}

TEST(Qdq, AnAttentionHasItsInProjectionBehindPairs) {
  const Graph original = parse_graph(attention("z"), ops()), graph = prepared_text(attention("z"));
  const FusionPlan plan = make_plan(graph);
  EXPECT_EQ(plan.module_counts(),
            (std::map<std::string, int>{{"FusedMHAInProjection", 1}, {"FusedScaledDotProductAttention", 1}}))
      << print(graph);
  EXPECT_EQ(qdq_summary(plan).declared, 4u);
  const std::vector<Tensor> inputs = random_inputs(original);
  EXPECT_TRUE(interpret(apply(graph, plan), inputs)[0].same_bits(interpret(original, inputs)[0]));
}

TEST(Qdq, ExplainSaysWhyTheLinearsOfAnInProjectionStayApart) {
  const Graph graph = prepared_text(attention("z"));
  const FusionPlan plan = make_plan(graph);
  Graph fused = apply(graph, plan);
  const std::vector<ShapeVerdict> shaping = merge_siblings()(fused);
  size_t told = 0;
  for (const Remark& remark : compound_remarks(graph, plan, &shaping))
    if (remark.rule == kSiblingLinears) {
      ++told;
      EXPECT_EQ(remark.code, "dequantized") << remark.message;
    }
  EXPECT_EQ(told, 1u);
}

TEST(Qdq, AnAttentionBehindAPairThatChangesValuesHasNone) {
  const FusionPlan plan = make_plan(prepared_text(attention("one")));
  EXPECT_EQ(plan.module_counts(),
            (std::map<std::string, int>{{"FusedLinear", 3}, {"FusedScaledDotProductAttention", 1}}));
}

TEST(Qdq, ExplainNamesThePairThatBlocks) {
  const std::string twice =
      why(blocked("%d = dequantize_linear(%q, %s, %z) @\"DQ\"\n%r = relu(%d)\n%y = mul(%r, %d)\n"));
  EXPECT_NE(twice.find("ConvBNReLU"), std::string::npos) << twice;
  EXPECT_NE(twice.find("\"DQ\""), std::string::npos) << twice;
  const std::string unequal = why(blocked("%d = dequantize_linear(%q, %t, %z) @\"DQ\"\n%y = relu(%d)\n"));
  EXPECT_NE(unequal.find("different scales"), std::string::npos) << unequal;
  EXPECT_NE(unequal.find("\"Q\""), std::string::npos) << unequal;
}

TEST(Qdq, DequantisedWeightsBecomeConstantsForKernelsOnly) {
  Graph graph = prepared_text(net(pair));
  const std::vector<Tensor> inputs = random_inputs(graph);
  const Tensor want = interpret(graph, inputs, {.precision = Precision::typed})[0];
  EXPECT_FALSE(fold_dequantized(graph).empty());
  verify(graph);
  for (const Node* n : graph.nodes()) EXPECT_FALSE(n->is("dequantize_linear") && n->input(0)->is_constant());
  EXPECT_TRUE(interpret(graph, inputs, {.precision = Precision::typed})[0].same_bits(want));
  EXPECT_TRUE(fold_dequantized(graph).empty());
}

TEST(Qdq, AZeroPointThatTheUserGivesKeepsTheWeightComputed) {
  const std::string text = R"(graph (%x: f32[2,8], %z: i8[]) {
    %wi = const rand<1> : i8[8,4] %s = const splat<0.05> : f32[] %w = dequantize_linear(%wi, %s, %z)
    %y = matmul(%x, %w) return %y })";
  Graph graph = prepared_text(text);
  EXPECT_TRUE(fold_dequantized(graph).empty());
  EXPECT_FALSE(make_plan(graph).module_counts().contains("FusedLinear")) << "the weight is not constant";
  const std::vector<Tensor> inputs = random_inputs(graph);
  EXPECT_TRUE(
      interpret(apply(graph, make_plan(graph)), inputs)[0].same_bits(interpret(parse_graph(text, ops()), inputs)[0]));
}

}  // namespace
}  // namespace opfuse
