// Each compound where it stands and where it does not; the plan of the same graph keeps its values.
#include "fusion/explain/compounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/names.hpp"
#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"

namespace opfuse {
namespace {

struct Example {
  const char* name;
  const char* text;
  size_t groups;     ///< of the first compound of that name; 0: there is none
  const char* code;  ///< why they are several
  size_t nodes = 0;  ///< of it, where that is the question
};

void PrintTo(const Example& e, std::ostream* out) { *out << e.name << ", " << e.groups << " groups"; }

const Example kExamples[] = {
    {"LinearAdd", R"(graph (%x: f32[4,8], %r: f32[4,6]) { %w = const rand<1> : f32[8,6] %b = const rand<2> : f32[6]
      %m = matmul(%x, %w) %l = add(%m, %b) %y = add(%l, %r) return %y })",
     1, ""},
    {"LinearAdd", R"(graph (%x: f32[2,4,8], %r: f32[4,2,6]) { %w = const rand<1> : f32[8,6]
      %m = matmul(%x, %w) %t = transpose(%m) {perm = [1,0,2]} %y = add(%t, %r) return %y })",
     3, "moves_elements"},
    {"LinearAdd", R"(graph (%x: f32[4,8], %r: f32[4,6]) { %w = const rand<1> : f32[8,6]
      %m = matmul(%x, %w) %s = add(%m, %r) %y = mul(%s, %m) return %y })",
     0, ""},  // the product has another reader
    {"AddLayerNorm", R"(graph (%x: f32[4,8], %r: f32[4,8]) { %w = const rand<1> : f32[8] %b = const rand<2> : f32[8]
      %s = add(%x, %r) %y = layer_norm(%s, %w, %b) return %y })",
     1, ""},
    {"AddLayerNorm", R"(graph (%x: f32[4,8], %r: f32[4,8]) { %w = const rand<1> : f32[8] %b = const rand<2> : f32[8]
      %s = add(%x, %r) %n = layer_norm(%s, %w, %b) %y = sub(%s, %n) return %y })",
     2, ""},
    {"AddLayerNorm", R"(graph (%x: f32[4,8]) { %w = const rand<1> : f32[8] %c = const rand<2> : f32[8]
      %s = add(%x, %c) %y = layer_norm(%s, %w) return %y })",
     0, ""},  // a constant is not a residual
    {"LayerScaleAdd", R"(graph (%x: f32[2,8,4,4], %r: f32[2,8,4,4]) { %g = const rand<1> : f32[8,1,1]
      %s = mul(%x, %g) %y = add(%s, %r) return %y })",
     1, ""},
    {"LayerScaleAdd", R"(graph (%x: f32[2,8,4,4], %r: f32[2,8,4,4]) { %g = const splat<0.5> : f32[]
      %s = mul(%x, %g) %y = add(%s, %r) return %y })",
     0, ""},  // one number is not a layer scale
    {"LayerScaleAdd", R"(graph (%x: f32[2,8,4,4], %r: f32[2,8,4,4]) { %g = const rand<1> : f32[2,8,4,4]
      %s = mul(%x, %g) %y = add(%s, %r) return %y })",
     0, ""},  // nor is a whole tensor
    {"SqueezeExcite", R"(graph (%x: f32[2,8,4,4]) { %a = const rand<1> : f32[4,8,1,1] %c = const rand<2> : f32[8,4,1,1]
      %p = global_average_pool(%x) %d = conv(%p, %a) %e = relu(%d) %f = conv(%e, %c) %g = sigmoid(%f) %y = mul(%g, %x)
      return %y })",
     4, "two_anchors"},
    {"SqueezeExcite", R"(graph (%x: f32[2,8,4,4], %z: f32[2,8,4,4]) { %a = const rand<1> : f32[4,8,1,1]
      %c = const rand<2> : f32[8,4,1,1] %p = global_average_pool(%x) %d = conv(%p, %a) %e = relu(%d) %f = conv(%e, %c)
      %g = sigmoid(%f) %y = mul(%g, %z) return %y })",
     0, ""},  // the gate weighs another value
    {"SqueezeExcite", R"(graph (%x: f32[2,8,4,4]) { %a = const rand<1> : f32[4,8,1,1] %c = const rand<2> : f32[8,4,1,1]
      %p = reduce_mean(%x) {axes = [2,3]} %d = conv(%p, %a) %e = relu(%d) %f = conv(%e, %c) %g = sigmoid(%f)
      %y = mul(%g, %x) return %y })",
     4, "two_anchors"},
    {"SqueezeExcite", R"(graph (%x: f32[2,4,4,8]) { %a = const rand<1> : f32[8,4] %c = const rand<2> : f32[4,8]
      %p = reduce_mean(%x) {axes = [1,2]} %d = matmul(%p, %a) %e = relu(%d) %f = matmul(%e, %c) %g = sigmoid(%f)
      %y = mul(%g, %x) return %y })",
     4, "two_anchors"},  // channels last
    {"SqueezeExcite", R"(graph (%x: f32[2,8,8,8]) { %a = const rand<1> : f32[4,8,1,1] %c = const rand<2> : f32[8,4,1,1]
      %p = reduce_mean(%x) {axes = [1,3]} %t = transpose(%p) {perm = [0,2,1,3]} %d = conv(%t, %a) %e = relu(%d)
      %f = conv(%e, %c) %g = sigmoid(%f) %y = mul(%g, %x) return %y })",
     0, ""},  // means of rows, not of channels
    {"NormLinear", R"(graph (%x: f32[4,8]) { %s = const rand<1> : f32[8] %b = const rand<2> : f32[8]
      %w = const rand<3> : f32[8,6] %n = layer_norm(%x, %s, %b) %y = matmul(%n, %w) return %y })",
     2, ""},
    {"NormLinear", R"(graph (%x: f32[4,8], %w: f32[8,6]) { %s = const rand<1> : f32[8]
      %n = layer_norm(%x, %s) %y = matmul(%n, %w) return %y })",
     0, ""},  // computed weights are not a Linear
    {"GatedMLP", R"(graph (%x: f32[4,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
      %g = matmul(%x, %a) %s = sigmoid(%g) %h = mul(%g, %s) %u = matmul(%x, %b) %y = mul(%h, %u) return %y })",
     2, ""},
    {"GatedMLP", R"(graph (%x: f32[4,8], %z: f32[4,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
      %g = matmul(%x, %a) %h = gelu(%g) %u = matmul(%z, %b) %y = mul(%h, %u) return %y })",
     0, ""},  // two sources
    {"SiblingLinears", R"(graph (%x: f32[4,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
      %c = const rand<3> : f32[6] %g = matmul(%x, %a) %h = add(%g, %c) %u = matmul(%x, %b) return %h, %u })",
     2, "no_edge", 3},
    {"SiblingLinears", R"(graph (%x: f32[4,8]) { %a = const rand<1> : f32[8,8] %b = const rand<2> : f32[8,6]
      %g = matmul(%x, %a) %y = matmul(%g, %b) return %y })",
     0, ""},  // one after the other
    {"SiblingLinears", R"(graph (%x: f32[6,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
      %c = const rand<3> : f32[6,1] %g = matmul(%x, %a) %h = add(%g, %c) %u = matmul(%x, %b) return %h, %u })",
     2, "no_edge", 2},  // a number per row is not a bias
    {"SiblingLinears", R"(graph (%x: f32[4,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
      %g = gemm(%x, %a) {alpha = 2.0} %u = gemm(%x, %b) return %g, %u })",
     0, ""},  // a scaled product is not a Linear
    {"SiblingLinears", R"(graph (%x: f32[4,8], %a: f32[8,6]) { %b = const rand<2> : f32[8,6]
      %g = matmul(%x, %a) %u = matmul(%x, %b) return %g, %u })",
     0, ""},  // computed weights
    {"ConvElementwise", R"(graph (%x: f32[1,4,8,8], %r: f32[1,4,8,8]) { %w = const rand<1> : f32[4,4,3,3]
      %c = conv(%x, %w) {pads = [1,1,1,1]} %t = tanh(%c) %m = mul(%t, %r) %e = exp(%m) %y = sub(%e, %r) return %y })",
     1, ""},
    {"ConvElementwise", R"(graph (%x: f32[1,4,8,8]) { %w = const rand<1> : f32[4,4,3,3]
      %c = conv(%x, %w) {pads = [1,1,1,1]} %y = softmax(%c) return %y })",
     0, ""},
};

class Compounds : public testing::TestWithParam<Example> {};

TEST_P(Compounds, AreFoundWhereTheyStandAndOnlyThere) {
  const Example& e = GetParam();
  const Graph original = parse_graph(e.text, ops());
  const Graph graph = prepared(original.clone());
  const FusionPlan plan = make_plan(graph);
  size_t groups = 0;
  for (const Compound& c : compounds(graph, plan)) {
    if (c.name != e.name) continue;
    groups = c.groups.size();
    if (e.nodes > 0) {
      EXPECT_EQ(c.nodes.size(), e.nodes);
    }
    const NodeNames names(graph);
    for (size_t i = 1; i < c.nodes.size(); ++i)
      EXPECT_LT(graph.position(names.find(c.nodes[i - 1])), graph.position(names.find(c.nodes[i]))) << c.nodes[i];
    EXPECT_EQ(c.reason.has_value(), groups > 1);
    if (c.reason && *e.code) {
      EXPECT_EQ(c.reason->code, e.code) << c.reason->message;
    }
  }
  EXPECT_EQ(groups, e.groups) << print(graph);
  const std::vector<Tensor> inputs = random_inputs(original);
  const std::vector<Tensor> want = interpret(original, inputs), got = interpret(apply(graph, plan), inputs);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]).relative(), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Examples, Compounds, testing::ValuesIn(kExamples), [](const auto& info) {
  return std::string(info.param.name) + "_" + std::to_string(info.index);
});

Remark remark_of(const char* rule, const std::vector<ShapeVerdict>* shaping, const char* text,
                 const TargetInfo* cpu = nullptr) {
  const Graph graph = prepared_text(text);
  for (Remark& r : compound_remarks(graph, make_plan(graph), shaping, cpu))
    if (r.rule == rule) return std::move(r);
  ADD_FAILURE() << "no " << rule;
  return {};
}

constexpr const char* kTwo = R"(graph (%x: f32[4,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
  %g = matmul(%x, %a) %u = matmul(%x, %b) %s = softmax(%g) %t = softmax(%u) return %s, %t })";

TEST(CompoundRemarks, SayWhatCompilingMakesOfSiblings) {
  const auto told = [](std::vector<std::string> results, std::optional<Decline> why = {}) {
    return std::vector<ShapeVerdict>{
        {.pass = "merge-siblings", .nodes = std::move(results), .value = "x", .refused = std::move(why)}};
  };
  const std::vector<ShapeVerdict> merged = told({"g", "u"}), other = told({"p", "q"}),
                                  apart = told({"g"}, Decline{"epilogue", "more follows", {}});
  EXPECT_EQ(remark_of(kSiblingLinears, &merged, kTwo).code, "one_product");
  EXPECT_EQ(remark_of(kSiblingLinears, &merged, kTwo).message, "2 Linears run as one product");
  EXPECT_EQ(remark_of(kSiblingLinears, &apart, kTwo).code, "epilogue");
  EXPECT_EQ(remark_of(kSiblingLinears, &apart, kTwo).message, "g apart, epilogue: more follows");
  EXPECT_EQ(remark_of(kSiblingLinears, &other, kTwo).code, "no_edge");
  EXPECT_EQ(remark_of(kSiblingLinears, nullptr, kTwo).code, "cpu_only");  // of a target that merges none
}

TEST(CompoundRemarks, SayWhatCompilingMakesOfAGate) {
  const char* text = R"(graph (%x: f32[4,8]) { %a = const rand<1> : f32[8,6] %b = const rand<2> : f32[8,6]
    %g = matmul(%x, %a) %s = silu(%g) %u = matmul(%x, %b) %y = mul(%s, %u) return %y })";
  const Graph graph = prepared_text(text);
  ShapeVerdict verdict{.pass = "join-gates", .value = "s"};
  const auto remark = [&] {
    const std::vector<ShapeVerdict> shaping{verdict};
    for (Remark& r : compound_remarks(graph, make_plan(graph), &shaping))
      if (r.rule == "GatedMLP") return std::move(r);
    return Remark{};
  };
  EXPECT_EQ(remark().code, "one_launch");
  verdict.refused = Decline{"no_gain", "it is slower", {}};
  EXPECT_EQ(remark().code, "no_gain");
  EXPECT_EQ(remark().message, "2 groups, two launches: it is slower");
  verdict.value = "another";
  EXPECT_EQ(remark().code, "two_anchors");
  for (const Remark& r : compound_remarks(graph, make_plan(graph)))  // of a target that joins none
    if (r.rule == "GatedMLP") {
      EXPECT_EQ(r.code, "cpu_only");
    }
}

TEST(CompoundRemarks, SayWhatAPrologueWouldCost) {
  const char* text = R"(graph (%x: f32[4,8]) { %s = const rand<1> : f32[8]
    %w = const rand<3> : f32[8,768] %n = layer_norm(%x, %s) %y = matmul(%n, %w) return %y })";
  const auto said = [&](const std::string& target) {
    const TargetInfo info = parse_target(target);
    return remark_of("NormLinear", nullptr, text, &info).message;
  };
  EXPECT_THAT(
      said("cpu:avx512"),
      ::testing::HasSubstr("spare 0.00 MB of stores and loads, at most 1.1 % of the product's time with vectors "
                           "of 16, and normalise rows of 8 again for each tile of the 768"));
  EXPECT_THAT(said("cpu:avx2"), ::testing::HasSubstr("at most 0.6 % of the product's time with vectors of 8"));
  EXPECT_THAT(said("cpu:baseline"), ::testing::HasSubstr("at most 0.1 % of the product's time with vectors of 4"));
  EXPECT_THAT(remark_of("NormLinear", nullptr, text).message, ::testing::Not(::testing::HasSubstr("spare")));
}

TEST(CompoundsOfModels, LeaveTheCountsOfModulesAlone) {
  const Graph graph = prepared(build_zoo("vit_b_16", {.resolution = 32, .classes = 10, .width = 0.125}));
  const FusionPlan plan = make_plan(graph);
  std::map<std::string, int> counts;
  for (const Compound& c : compounds(graph, plan)) ++counts[c.name];
  EXPECT_EQ(counts["LinearAdd"], 24);     // the out-projections and the second Linears
  EXPECT_EQ(counts["AddLayerNorm"], 24);  // every sum; positions are constant
  EXPECT_EQ(counts["NormLinear"], 12);    // first Linears; in-projections are modules of their own
  EXPECT_EQ(plan.module_counts().at("FusedLinear"), 25);
}

}  // namespace
}  // namespace opfuse
