// Every pattern of the catalogue: a graph it fires on, with its Q/DQ points, and graphs it spares, with the reason.
#include <gtest/gtest.h>

#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"

namespace opfuse {
namespace {

struct Case {
  std::string name;
  std::string pattern;
  std::string graph;
  std::string reason;  ///< code of the decline; empty: fires
  std::vector<QdqPoint> points = {};
};

const std::string kStem = "graph (%x: f32[1,3,32,32]) {\n %w = const rand<1> : f32[8,3,7,7]\n %c = conv(%x, %w) ";
const std::string kBody =
    "graph (%x: f32[1,4,8,8], %z: f32[1,4,8,8]) {\n %w = const rand<1> : f32[4,4,3,3]\n"
    " %c = conv(%x, %w) {pads = [1,1,1,1]}\n";
const std::string kBn =
    " %s = const rand<2> : f32[4]\n %v = const splat<0.5> : f32[4]\n %n = batch_norm(%c, %s, %s, %s, %v)\n";
const std::string kLinear = "graph (%x: f32[2,8]) {\n %w = const rand<1> : f32[16,8]\n %b = const rand<2> : f32[16]\n";
const std::string kEnd = "\n return %y\n}";
const std::string kNorm = "graph (%x: f32[2,8]) {\n %s = const rand<1> : f32[8]\n";
const std::string kAttend =
    "graph (%x: f32[2,5,8], %z: f32[2,5,8]) {\n %w = const rand<1> : f32[8,24]\n %root = const splat<2.5> : f32[]\n";
const std::string kScores =
    "\n %t = transpose(%k) {perm = [0,2,1]}\n %a = matmul(%q, %t)\n %d = div(%a, %root)\n %p = softmax(%d)\n"
    " %y = matmul(%p, %v)" +
    kEnd;
const std::string kHeads =
    "\n %t = transpose(%k) {perm = [0,2,1]}\n %a = matmul(%q, %t)\n %p = softmax(%a)\n %y = matmul(%p, %k)" + kEnd;

std::vector<Case> cases() {
  const std::string pool =
      "%r = relu(%c)\n %y = max_pool(%r) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}" + kEnd;
  const std::string narrow = "graph (%x: f32[1,3,32,32]) {\n %w = const rand<1> : f32[8,3,5,5]\n %c = conv(%x, %w)\n ";
  return {
      {"stem", "StemConvBNReLUMaxPool", kStem + "{pads=[3,3,3,3], strides=[2,2]}\n " + pool, "", {{"INPUT", "x"}}},
      {"stem_5x5", "StemConvBNReLUMaxPool", narrow + pool, "not_a_stem"},
      {"stem_stride_5", "StemConvBNReLUMaxPool", kStem + "{pads=[3,3,3,3], strides=[5,5]}\n " + pool, "not_a_stem"},
      {"stem_wide_pool", "StemConvBNReLUMaxPool",
       kStem + "{pads=[3,3,3,3]}\n %r = relu(%c)\n %y = max_pool(%r) {kernel_shape=[5,5]}" + kEnd, "pool_window"},
      {"residual",
       "ConvBNAddReLU",
       kBody + " %a = add(%c, %z)\n %y = relu(%a)" + kEnd,
       "",
       {{"INPUT", "x"}, {"RESIDUAL_INPUT", "z"}}},
      {"residual_bn_gelu",
       "ConvBNAddReLU",
       kBody + kBn + " %a = add(%z, %n)\n %y = gelu(%a)" + kEnd,
       "",
       {{"INPUT", "x"}, {"RESIDUAL_INPUT", "z"}}},
      {"residual_read_twice", "ConvBNAddReLU", kBody + " %a = add(%c, %z)\n %r = relu(%a)\n %y = mul(%a, %r)" + kEnd,
       "multi_consumer"},
      {"conv_relu", "ConvBNReLU", kBody + " %y = relu(%c)" + kEnd, "", {{"INPUT", "x"}}},
      {"conv_bn_elu", "ConvBNReLU", kBody + kBn + " %y = elu(%n)" + kEnd, "", {{"INPUT", "x"}}},
      {"conv_tanh", "ConvBNReLU", kBody + " %y = tanh(%c)" + kEnd, "op_mismatch"},
      {"conv_clip_1", "ConvBNReLU", kBody + " %y = clip(%c) {min = -1, max = 1}" + kEnd, "constant_mismatch"},
      {"conv_bn", "ConvBN", kBody + kBn + " %y = identity(%n)" + kEnd, "", {{"INPUT", "x"}}},
      {"bare_conv", "ConvBN", kBody + " %y = transpose(%c) {perm=[0,2,3,1]}" + kEnd, "", {{"INPUT", "x"}}},
      {"linear_relu",
       "LinearReLU",
       kLinear + " %g = gemm(%x, %w, %b) {transB = true}\n %y = relu(%g)" + kEnd,
       "",
       {{"INPUT", "x"}}},
      {"linear",
       "Linear",
       kLinear + " %g = gemm(%x, %w, %b) {transB = true}\n %y = softmax(%g)" + kEnd,
       "",
       {{"INPUT", "x"}}},
      {"matmul_bias",
       "Linear",
       "graph (%x: f32[2,3,8]) {\n %w = const rand<1> : f32[8,16]\n %b = const rand<2> : f32[16]\n %m = matmul(%x, "
       "%w)\n"
       " %a = add(%b, %m)\n %y = softmax(%a)" +
           kEnd,
       "",
       {{"INPUT", "x"}}},
      {"matmul_of_two_values", "Linear", "graph (%x: f32[2,8], %w: f32[8,4]) {\n %y = matmul(%x, %w)" + kEnd,
       "not_constant"},
      {"gemm_transposed_data", "Linear",
       "graph (%x: f32[8,2]) {\n %w = const rand<1> : f32[8,4]\n"
       " %y = gemm(%x, %w) {transA = true}" +
           kEnd,
       "gemm_attributes"},
      {"global_average_pool",
       "AdaptiveAvgPool",
       "graph (%x: f32[1,4,8,8]) {\n %p = global_average_pool(%x)\n %y = softmax(%p)" + kEnd,
       "",
       {{"INPUT", "x"}, {"OUTPUT", "p"}}},
      {"reduce_mean",
       "AdaptiveAvgPool",
       "graph (%x: f32[1,4,8,8]) {\n %y = reduce_mean(%x) {axes = [2,3]}" + kEnd,
       "",
       {{"INPUT", "x"}}},
      {"reduce_mean_negative_axes",
       "AdaptiveAvgPool",
       "graph (%x: f32[1,4,8,8]) {\n %a = const dense<-1,-2> : i64[2]\n %y = reduce_mean(%x, %a)" + kEnd,
       "",
       {{"INPUT", "x"}}},
      {"whole_window",
       "AdaptiveAvgPool",
       "graph (%x: f32[1,4,8,8]) {\n %y = average_pool(%x) {kernel_shape = [8,8]}" + kEnd,
       "",
       {{"INPUT", "x"}}},
      {"reduce_mean_channels", "AdaptiveAvgPool",
       "graph (%x: f32[1,4,8,8]) {\n %y = reduce_mean(%x) {axes = [1]}" + kEnd, "axes"},
      {"reduce_mean_of_rows", "AdaptiveAvgPool", "graph (%x: f32[2,4,8]) {\n %y = reduce_mean(%x) {axes = [-1]}" + kEnd,
       "rank"},
      {"layer_norm", "LayerNorm", kNorm + " %y = layer_norm(%x, %s, %s)" + kEnd, "", {}},
      {"layer_norm_of_integers_no", "LayerNorm", kNorm + " %y = reduce_mean(%x)" + kEnd, "op_mismatch"},
      {"in_projection",
       "MHAInProjection",
       kAttend + " %m = matmul(%x, %w)\n %q, %k, %v = split(%m) {axis = -1, split = [8,8,8]}" + kScores,
       "",
       {{"INPUT", "x"}}},
      {"in_projection_of_two", "MHAInProjection", kAttend + " %q = matmul(%x, %w)\n %k = matmul(%z, %w)" + kHeads,
       "op_mismatch"},
      {"attention",
       "ScaledDotProductAttention",
       kAttend + " %q = relu(%x)\n %k = sigmoid(%x)\n %v = tanh(%x)" + kScores,
       "",
       {{"INPUT", "q"}, {"KEY_INPUT", "t"}, {"VALUE_INPUT", "v"}}},
      {"attention_along_rows", "ScaledDotProductAttention",
       kAttend +
           " %t = transpose(%x) {perm = [0,2,1]}\n %a = matmul(%x, %t)\n %p = softmax(%a) {axis = 1}\n %y = matmul(%p, "
           "%x)" +
           kEnd,
       "op_mismatch"},
      {"partial_window", "AdaptiveAvgPool",
       "graph (%x: f32[1,4,8,8]) {\n %y = average_pool(%x) {kernel_shape = [4,4]}" + kEnd, "partial_window"},
  };
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.graph; }

class EveryPattern : public testing::TestWithParam<Case> {};

TEST_P(EveryPattern, FiresOrTellsWhyNot) {
  const Case& c = GetParam();
  const Graph g = prepared_text(c.graph);
  PlanOptions options;
  options.rules = false;
  const FusionPlan plan = make_plan(g, options);
  if (c.reason.empty()) {
    std::vector<const Candidate*> made = plan.applied();
    std::erase_if(made, [&](const Candidate* m) { return made.size() > 1 && m->pattern != c.pattern; });
    ASSERT_EQ(made.size(), 1u) << print(g);
    EXPECT_EQ(made[0]->pattern, c.pattern);
    EXPECT_EQ(made[0]->points, c.points);
    const Graph fused = apply(g, plan);
    verify(fused);
    const std::vector<Tensor> inputs = random_inputs(g);
    EXPECT_LE(difference(interpret(fused, inputs)[0], interpret(g, inputs)[0]).relative(), 1e-6);
    return;
  }
  std::vector<std::string> codes;
  for (const FusionPattern& p : fusion_patterns()) {
    if (p.name != c.pattern) continue;
    const Matcher matcher(g);
    for (Node* node : g.nodes()) {
      const MatchResult r = matcher.match(p.topology, node, p.where);
      EXPECT_FALSE(r);
      codes.push_back(r.partial.decline.code);
    }
  }
  EXPECT_NE(std::find(codes.begin(), codes.end(), c.reason), codes.end()) << testing::PrintToString(codes);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryPattern, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Patterns, EachHasACaseThatFiresAndAModuleName) {
  for (const FusionPattern& p : fusion_patterns()) {
    bool fires = false;
    for (const Case& c : cases()) fires |= c.pattern == p.name && c.reason.empty();
    EXPECT_TRUE(fires) << p.name;
    EXPECT_EQ(p.module.rfind("Fused", 0), 0u);
    EXPECT_FALSE(p.doc.empty() || p.topology.text().empty());
  }
}

}  // namespace
}  // namespace opfuse
