// Recomposition and conversions: what they rewrite, what they decline and why, and that values stay equal.
#include <gtest/gtest.h>

#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "match/pattern.hpp"
#include "ops/registry.hpp"
#include "passes/passes.hpp"

namespace opfuse {
namespace {

using Rewrite = std::function<bool(Graph&, RewriteReport*)>;

/// All of them, as the compiler runs them.
const Rewrite kRecompose = [](Graph& graph, RewriteReport* report) {
  return run_passes(graph, recompose_passes(), {.report = report}).changed();
};

struct Outcome {
  Graph graph;
  RewriteReport report;
  bool changed = false;
  std::vector<std::string> operators;
  std::string code(const std::string& rule) const {
    for (const RewriteNote& n : report.notes)
      if (n.rule == rule && !n.applied) return n.reason.code;
    return "";
  }
};

Outcome run(Rewrite rewrite, const std::string& text) {
  Outcome o{parse_graph(text, ops()), {}, false, {}};
  const Graph before = o.graph.clone();
  o.changed = rewrite(o.graph, &o.report);
  verify(o.graph);
  for (const Node* n : o.graph.nodes()) o.operators.emplace_back(operator_name(*n));
  const std::vector<Tensor> inputs = random_inputs(before);
  const auto want = interpret(before, inputs), got = interpret(o.graph, inputs);
  EXPECT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_LE(difference(got[i], want[i]).relative(), 1e-6);
    EXPECT_EQ(o.graph.outputs()[i]->name, before.outputs()[i]->name);
    EXPECT_EQ(o.graph.outputs()[i]->type, before.outputs()[i]->type);
  }
  return o;
}

using Names = std::vector<std::string>;

std::string conv(const std::string& rest) {
  return "graph (%x: f32[1,3,8,8], %z: f32[1,4,6,6]) {\n %w = const rand<1> : f32[4,3,3,3]\n %c = conv(%x, %w) "
         "@\"conv\"\n" +
         rest + "\n return %y\n}";
}

std::string group_norm(const std::string& groups, const std::string& count, const std::string& rest) {
  return "graph (%x: f32[2,6,4,5]) {\n %to = const dense<" + groups +
         "> : i64[3]\n %back = const dense<2,6,4,5> : i64[4]\n %s = const splat<2> : f32[" + count +
         "]\n %b = const splat<0.5> : f32[" + count +
         "]\n %g = const rand<1> : f32[6,1,1]\n %h = const rand<2> : f32[6,1,1]\n"
         " %r = reshape(%x, %to)\n %n = instance_norm(%r, %s, %b) {epsilon = 0.001}\n %j = reshape(%n, %back)\n" +
         rest + "\n return %y\n}";
}

TEST(RecomposeAttention, HasOneNameWhicheverScaleTheFileMakesFirst) {
  const std::string scales[] = {"%a = mul(%q, %s) @\"of_q\"\n", "%b = mul(%k, %s) @\"of_k\"\n"};
  for (const bool turned : {false, true}) {
    const Outcome o =
        run(kRecompose, "graph (%q: f32[2,5,8], %k: f32[2,8,7], %v: f32[2,7,4]) {\n%s = const dense<0.5> : f32[]\n" +
                            scales[turned ? 1 : 0] + scales[turned ? 0 : 1] +
                            "%m = matmul(%a, %b) %w = softmax(%m) {axis=-1}\n%y = matmul(%w, %v)\nreturn %y }");
    ASSERT_EQ(o.operators.size(), 1u);
    EXPECT_EQ(o.graph.nodes()[0]->name(), "of_q");
  }
}

TEST(RecomposeGroupNorm, AnInstanceNormBetweenReshapesTakesTheConstantsBehindIt) {
  const Outcome o = run(recompose_group_norm(), group_norm("2,1,120", "1", "%m = mul(%j, %g)\n %y = add(%h, %m)"));
  EXPECT_EQ(o.operators, (Names{"group_norm"}));
  EXPECT_EQ(*find(o.graph.nodes()[0]->attr_map(), "num_groups"), AttrValue(int64_t{1}));
}

TEST(RecomposeGroupNorm, WhatIsNotPerChannelStays) {
  const Outcome o = run(recompose_group_norm(), group_norm("2,1,120", "1", "%y = mul(%j, %x)"));
  EXPECT_EQ(o.operators, (Names{"group_norm", "mul"}));
}

TEST(RecomposeGroupNorm, GroupsAcrossImagesAreNone) {
  EXPECT_FALSE(run(recompose_group_norm(), group_norm("1,1,240", "1", "%y = relu(%j)")).changed);
}

TEST(RecomposeGroupNorm, SeveralGroupsStay) {
  EXPECT_FALSE(run(recompose_group_norm(), group_norm("2,2,60", "2", "%y = relu(%j)")).changed);
}

TEST(RecomposeGroupNorm, ANormThatOthersReadStays) {
  const std::string other = "%z = reshape(%n, %back)\n %y = add(%j, %z)";
  EXPECT_FALSE(run(recompose_group_norm(), group_norm("2,1,120", "1", other)).changed);
}

TEST(RecomposeConvAffine, AnAddedConstantPerChannelIsTheBias) {
  const Outcome o = run(recompose_conv_affine(), conv("%k = const rand<2> : f32[1,4,1,1]\n %y = add(%k, %c) @\"add\""));
  EXPECT_EQ(o.operators, (Names{"conv"}));
  ASSERT_EQ(o.graph.nodes()[0]->sources.size(), 2u);
  EXPECT_EQ(o.graph.nodes()[0]->inputs[2]->constant->sizes(), (std::vector<int64_t>{4}));
}

TEST(RecomposeConvAffine, ASubtractedConstantIsANegativeBiasOnTopOfTheOldOne) {
  const Outcome o = run(recompose_conv_affine(),
                        "graph (%x: f32[1,3,8,8]) {\n %w = const rand<1> : f32[4,3,3,3]\n %b = const rand<2> : f32[4]\n"
                        "%k = const rand<3> : f32[4,1,1]\n %c = conv(%x, %w, %b)\n %y = sub(%c, %k)\n return %y\n}");
  EXPECT_EQ(o.operators, (Names{"conv"}));
}

TEST(RecomposeConvAffine, AFullTensorIsNoBias) {
  const Outcome o = run(recompose_conv_affine(), conv("%k = const rand<2> : f32[1,4,6,6]\n %y = add(%c, %k)"));
  EXPECT_FALSE(o.changed);
  EXPECT_EQ(o.code("Conv -> Add is a bias"), "not_per_channel");
}

TEST(RecomposeConvAffine, AConstantAlongTheWidthIsNoBias) {
  EXPECT_FALSE(run(recompose_conv_affine(), conv("%k = const rand<2> : f32[6]\n %y = add(%c, %k)")).changed);
}

TEST(RecomposeConvAffine, AConvolutionSubtractedFromAConstantStays) {
  EXPECT_FALSE(run(recompose_conv_affine(), conv("%k = const rand<2> : f32[4,1,1]\n %y = sub(%k, %c)")).changed);
}

TEST(RecomposeConvAffine, AResidualStays) {
  EXPECT_FALSE(run(recompose_conv_affine(), conv("%y = add(%c, %z)")).changed);
}

TEST(RecomposeConvAffine, AConvolutionReadTwiceStays) {
  EXPECT_FALSE(
      run(recompose_conv_affine(), conv("%k = const rand<2> : f32[4,1,1]\n %a = add(%c, %k)\n %y = mul(%a, %c)"))
          .changed);
}

TEST(RecomposeConvAffine, AFrozenBatchNormIsABatchNorm) {
  const Outcome o = run(recompose_conv_affine(), conv("%k = const rand<2> : f32[1,4,1,1]\n %l = const rand<3> : "
                                                      "f32[1,4,1,1]\n %m = mul(%c, %k)\n %y = add(%m, %l)"));
  EXPECT_EQ(o.operators, (Names{"conv", "batch_norm"}));
}

TEST(RecomposeConvAffine, AScaleAloneIsABatchNormToo) {
  const Outcome o =
      run(recompose_conv_affine(), conv("%k = const splat<0.25> : f32[]\n %m = mul(%k, %c)\n %y = relu(%m)"));
  EXPECT_EQ(o.operators, (Names{"conv", "batch_norm", "relu"}));
}

TEST(RecomposeActivations, AWrongConstantIsRefusedByValue) {
  const Outcome o = run(recompose_activations(), R"(graph (%x: f32[4]) {
      %r = const splat<1.4> : f32[]
      %one = const splat<1> : f32[]
      %half = const splat<0.5> : f32[]
      %d = div(%x, %r) @"Div_90"
      %e = erf(%d)
      %a = add(%e, %one)
      %m = mul(%x, %a)
      %y = mul(%m, %half) @"Mul_93"
      return %y })");
  EXPECT_FALSE(o.changed);
  bool told = false;
  for (const RewriteNote& n : o.report.notes)
    told |= n.node == "Mul_93" && n.reason.message.find("expected constant 1.41421") != std::string::npos &&
            n.reason.message.find("found constant 1.4") != std::string::npos;
  EXPECT_TRUE(told);
}

TEST(RecomposeActivations, AnInteriorValueReadElsewhereKeepsItsNodes) {
  EXPECT_FALSE(run(recompose_activations(),
                   "graph (%x: f32[4]) {\n %s = sigmoid(%x)\n %y = mul(%x, %s)\n %z = exp(%s)\n return %y, %z\n}")
                   .changed);
}

TEST(RecomposeActivations, ASigmoidOfAnotherValueIsNoSilu) {
  EXPECT_FALSE(run(recompose_activations(),
                   "graph (%x: f32[4], %z: f32[4]) {\n %s = sigmoid(%z)\n %y = mul(%x, %s)\n return %y\n}")
                   .changed);
}

TEST(RecomposeActivations, ALimitThatBroadcastsIsNoRelu) {
  EXPECT_FALSE(run(recompose_activations(),
                   "graph (%x: f32[4]) {\n %k = const splat<0> : f32[1,1]\n %y = max(%x, %k)\n return %y\n}")
                   .changed);
}

TEST(RecomposeActivations, TheDefaultHardSigmoidTimesXIsNoHardSwish) {
  const Outcome o = run(recompose_activations(),
                        "graph (%x: f32[4]) {\n %s = hard_sigmoid(%x)\n %y = mul(%x, %s) @\"m\"\n return %y\n}");
  EXPECT_FALSE(o.changed);
}

TEST(RecomposeActivations, ACompositeHoldsTheNodesItWasFoundIn) {
  const Outcome o = run(recompose_activations(),
                        "graph (%x: f32[4]) {\n %s = sigmoid(%x) @\"s\"\n %y = mul(%x, %s) @\"m\"\n return %y\n}");
  ASSERT_EQ(o.operators, (Names{"silu"}));
  EXPECT_EQ(o.graph.nodes()[0]->body->nodes().size(), 2u);
  EXPECT_EQ(o.graph.nodes()[0]->sources.size(), 2u);
  Graph text = parse_graph(print(o.graph), ops());
  EXPECT_TRUE(equal(text, o.graph));
}

std::string layer_norm(const std::string& variance_axes, const std::string& square) {
  return "graph (%x: f32[2,5,8]) {\n %eps = const splat<1e-5> : f32[]\n %two = const splat<2> : f32[]\n"
         "%g = const rand<1> : f32[8]\n %b = const rand<2> : f32[8]\n %m = reduce_mean(%x) {axes=[-1]}\n %d = sub(%x, "
         "%m)\n" +
         square + "\n %v = reduce_mean(%q) {axes=" + variance_axes +
         "}\n %e = add(%v, %eps)\n %r = sqrt(%e)\n %n = div(%d, %r)\n %s = mul(%n, %g)\n %y = add(%s, %b)\n return "
         "%y\n}";
}

TEST(RecomposeNorms, TheNineNodesOfALayerNormAreOne) {
  for (const char* square : {"%q = pow(%d, %two)", "%q = mul(%d, %d)"})
    EXPECT_EQ(run(recompose_norms(), layer_norm("[-1]", square)).operators, (Names{"layer_norm"})) << square;
}

TEST(RecomposeNorms, AVarianceOverOtherAxesIsNoLayerNorm) {
  EXPECT_FALSE(run(recompose_norms(), layer_norm("[1]", "%q = mul(%d, %d)")).changed);
}

TEST(RemoveIdentityPools, RemovesAOneByOneAverage) {
  EXPECT_EQ(run(remove_identity_pools(),
                "graph (%x: f32[1,4,7,7]) {\n %p = average_pool(%x) {kernel_shape=[1,1], strides=[1,1]}\n %y = "
                "relu(%p)\n return %y\n}")
                .operators,
            (Names{"relu"}));
  EXPECT_EQ(run(remove_identity_pools(),
                "graph (%x: f32[1,4,1,1]) {\n %r = relu(%x)\n %y = global_average_pool(%r)\n return %y\n}")
                .operators,
            (Names{"relu"}));
}

/// A graph output that a removed pool reads keeps its name; a removed one that is an output hands its own on.
TEST(RemoveIdentityPools, KeepsTheNamesOfGraphOutputs) {
  const auto outputs = [](const std::string& text) {
    Graph g = parse_graph(text, ops());
    remove_identity_pools()(g, nullptr);
    Names names;
    for (const Value* v : g.outputs()) names.push_back(v->name);
    return names;
  };
  EXPECT_EQ(outputs("graph (%x: f32[1,4,7,7]) {\n %y = relu(%x)\n %p = average_pool(%y) {kernel_shape=[1,1], "
                    "strides=[1,1]}\n %z = neg(%p)\n return %y, %z\n}"),
            (Names{"y", "z"}));
  EXPECT_EQ(outputs("graph (%x: f32[1,4,1,1]) {\n %r = relu(%x)\n %y = global_average_pool(%r)\n return %y\n}"),
            (Names{"y"}));
}

TEST(RemoveIdentityPools, SparesRealPoolsAndUnknownMaps) {
  const Outcome real =
      run(remove_identity_pools(), "graph (%x: f32[1,4,7,7]) {\n %y = global_average_pool(%x)\n return %y\n}");
  EXPECT_FALSE(real.changed);
  EXPECT_TRUE(real.report.notes.empty());  // an ordinary pool is nothing to remark
  Graph g = parse_graph("graph (%x: f32[1,4,h,w]) {\n %y = global_average_pool(%x)\n return %y\n}", ops());
  RewriteReport report;
  EXPECT_FALSE(remove_identity_pools()(g, &report));
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0].reason.code, "unknown_dimension");
}

std::string head(const std::string& map, const std::string& between, const std::string& product) {
  return "graph (%x: f32[2,4," + map +
         "]) {\n %w = const rand<1> : f32[10,4]\n %t = const rand<2> : f32[4,10]\n"
         "%b = const rand<3> : f32[10]\n %u = const rand<4> : f32[10,36]\n" +
         between + "\n" + product + "\n return %y\n}";
}

TEST(FlattenLinearToConv1x1, ConvertsGemmAndMatMulAfterFlattenOrReshape) {
  const std::string flatten = "%f = flatten(%x)", reshape = "%k = const dense<2,4> : i64[2]\n %f = reshape(%x, %k)";
  for (const std::string& between : {flatten, reshape})
    for (const char* product : {"%y = gemm(%f, %w, %b) {transB=true}", "%y = gemm(%f, %t, %b)", "%y = gemm(%f, %t)",
                                "%m = matmul(%f, %t)\n %y = add(%m, %b)", "%y = matmul(%f, %t)"})
      EXPECT_EQ(run(flatten_linear_to_conv1x1(), head("1,1", between, product)).operators, (Names{"conv", "flatten"}))
          << product;
}

TEST(FlattenLinearToConv1x1, KeepsWhatStandsBetween) {
  const Outcome o = run(flatten_linear_to_conv1x1(), head("1,1", "%f = flatten(%x)\n %r = relu(%f)\n %d = dropout(%r)",
                                                          "%y = gemm(%d, %w, %b) {transB=true}"));
  EXPECT_EQ(o.operators, (Names{"relu", "dropout", "conv", "flatten"}));
}

TEST(FlattenLinearToConv1x1, KeepsACompositeBetween) {
  const Outcome o = run(kRecompose, head("1,1", "%f = flatten(%x)\n %s = sigmoid(%f)\n %m = mul(%f, %s)",
                                         "%y = gemm(%m, %w, %b) {transB=true}"));
  EXPECT_EQ(o.operators, (Names{"silu", "conv", "flatten"}));
}

TEST(FlattenLinearToConv1x1, ConvertsAWholeMlpToAFixedPoint) {
  const Outcome o =
      run(kRecompose, head("1,1", "%f = flatten(%x)",
                           "%g = gemm(%f, %w, %b) {transB=true}\n %r = relu(%g)\n %v = const rand<9> : f32[3,10]\n"
                           "%y = gemm(%r, %v) {transB=true}"));
  EXPECT_EQ(o.operators, (Names{"conv", "relu", "conv", "flatten"}));
}

TEST(FlattenLinearToConv1x1, RefusesAMapLargerThanOneByOneWithBothNumbers) {
  const Outcome o =
      run(flatten_linear_to_conv1x1(), head("3,3", "%f = flatten(%x)", "%y = gemm(%f, %u) {transB=true}"));
  EXPECT_FALSE(o.changed);
  EXPECT_EQ(o.code("FlattenLinearToConv1x1"), "spatial_extent");
  EXPECT_NE(o.report.notes[0].reason.message.find("3x3"), std::string::npos);
  EXPECT_NE(o.report.notes[0].reason.message.find("36"), std::string::npos);
}

TEST(FlattenLinearToConv1x1, RefusesAScaledGemmAndAComputedWeight) {
  EXPECT_EQ(
      run(flatten_linear_to_conv1x1(), head("1,1", "%f = flatten(%x)", "%y = gemm(%f, %w) {alpha=0.5, transB=true}"))
          .code("FlattenLinearToConv1x1"),
      "gemm_attributes");
  EXPECT_EQ(run(flatten_linear_to_conv1x1(),
                "graph (%x: f32[2,4,1,1], %w: f32[4,3]) {\n %f = flatten(%x)\n %y = gemm(%f, %w)\n return %y\n}")
                .code("FlattenLinearToConv1x1"),
            "computed_weight");
}

}  // namespace
}  // namespace opfuse
