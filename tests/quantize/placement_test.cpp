// Places of pairs: the counts made by hand from architectures (one pair per tensor), the rules of compilers, and what
// stays in float for which reason.
#include "quantize/placement.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/fail.hpp"
#include "driver/compilation.hpp"
#include "ops/registry.hpp"
#include "quantize/insert_pairs.hpp"
#include "quantize/multiply_adds.hpp"
#include "quantize/prepare_products.hpp"
#include "testing/temporary_folder.hpp"
#include "zoo/zoo.hpp"

namespace opfuse::quantization {
namespace {

struct Placed {
  Graph prepared;
  FusionPlan plan;
  Placement placement;
};

Placed placed(const Graph& graph, const std::string& compiler, PlacementRequest request = {}) {
  Compilation c(graph, parse_target("cpu:avx2"), {});
  c.run_to(Milestone::prepared);
  request.rules = rules_of(compiler);
  FusionPlan plan = make_plan(c.prepared, {.rules = false});
  Placed made{std::move(c.prepared), std::move(plan), {}};
  made.placement = place(made.prepared, made.plan, request);
  return made;
}

Graph narrow(const std::string& name, int64_t classes = 10) {
  return build_zoo(name, {.resolution = name == "resnet50" ? 224 : 64, .classes = classes, .width = 0.125});
}

size_t points_of_plan(const Placement& p) {
  return std::count_if(p.tensors.begin(), p.tensors.end(), [](const PlacedTensor& t) { return !t.result; });
}

TEST(Placement, ResNet50Has72PointsOn55Tensors) {
  const Placement p = placed(narrow("resnet50"), "tensorrt").placement;
  EXPECT_EQ(p.points, 72u);
  EXPECT_EQ(p.tensors.size(), 55u);
  EXPECT_EQ(p.products.size(), 54u);
  EXPECT_TRUE(p.left.empty());
}

TEST(Placement, ResNet50WithoutItsPoolHas70PointsOn54Tensors) {
  const Placement p = placed(narrow("resnet50"), "tensorrt", {.presets = {"global_pool"}}).placement;
  EXPECT_EQ(p.points, 70u);
  EXPECT_EQ(p.tensors.size(), 54u);
  EXPECT_EQ(p.products.size(), 54u);
  ASSERT_EQ(p.left.size(), 1u);
  EXPECT_EQ(p.left[0].reason.code, "preset");
}

TEST(Placement, ViTHas86PointsOfWhichTheHeadIsOne) {
  const PlacementRequest all{.min_linear = 0};
  const Placement p = placed(narrow("vit_b_16"), "tensorrt", all).placement;
  EXPECT_EQ(p.points, 86u);
  EXPECT_EQ(p.tensors.size(), 86u);
  EXPECT_EQ(p.products.size(), 1u + 12 + 25 + 12);
  Placed head = placed(narrow("vit_b_16"), "tensorrt", all);
  const std::string last = head.plan.applied().back()->id;
  EXPECT_EQ(placed(narrow("vit_b_16"), "tensorrt", {.skip = {last}, .min_linear = 0}).placement.tensors.size(), 85u);
}

TEST(Placement, AttentionOfThreeLinearsSharesOnePair) {
  const Placed bert = placed(narrow("bert_base"), "tensorrt", {.min_linear = 0});
  Placement p = bert.placement;
  EXPECT_EQ(p.tensors.size(), 85u);
  EXPECT_EQ(p.products.size(), 12u + 12 + 25);
  const Graph base = prepare_products(bert.prepared, p, false);
  EXPECT_EQ(p.products.size(), 36u + 12 + 25);  // the projections are Linears of their own now
  for (const PlacedTensor& t : p.tensors) EXPECT_TRUE(base.find_value(t.tensor)) << t.tensor;
}

/// K N / (K + N) of square ones is K / 2.
TEST(Placement, SmallLinearsStayInFloat) {
  const auto linear = [](int64_t k, int64_t n) {
    return parse_graph(
        fmt::format("graph (%x: f32[4,{0}]) {{ %w = const rand<1> : f32[{0},{1}] %y = matmul(%x, %w) return %y }}", k,
                    n),
        ops());
  };
  EXPECT_EQ(placed(linear(512, 512), "cpu").placement.tensors.size(), 1u);
  const Placement small = placed(linear(510, 512), "cpu").placement;
  EXPECT_TRUE(small.tensors.empty());
  ASSERT_EQ(small.left.size(), 1u);
  EXPECT_EQ(small.left[0].reason.code, "small_linear");
  EXPECT_EQ(placed(linear(8, 8), "cpu", {.min_linear = 4}).placement.tensors.size(), 1u);
  // 192: what compilers' files say
  EXPECT_EQ(placed(linear(384, 384), "onnxruntime").placement.products.size(), 1u);
  EXPECT_EQ(placed(linear(384, 384), "openvino").placement.products.size(), 1u);
  EXPECT_EQ(placed(linear(120, 360), "openvino").placement.products.size(), 0u);
  EXPECT_EQ(placed(linear(384, 384), "tensorrt").placement.products.size(), 0u);
}

constexpr const char* kBlock = R"(graph (%x: f32[1,16,8,8]) {
  %w = const rand<1> : f32[16,16,3,3] %b = const rand<2> : f32[16] %v = const rand<3> : f32[16,16,1,1]
  %u = const rand<4> : f32[16,1,3,3]
  %c = conv(%x, %w, %b) {pads = [1,1,1,1]} @"a"(Conv@17) %r = relu(%c) @"a_relu"(Relu@17)
  %d = conv(%r, %u) {pads = [1,1,1,1], group = 16} @"dw"(Conv@17) %h = hard_swish(%d) @"hs"(HardSwish@17)
  %e = conv(%h, %v) @"b"(Conv@17) %s = add(%e, %r) @"add"(Add@17) %y = relu(%s) @"y_relu"(Relu@17)
  return %y })";

std::vector<std::string> names(const Placement& p) {
  std::vector<std::string> list;
  for (const PlacedTensor& t : p.tensors) list.push_back(t.tensor);
  return list;
}

TEST(Placement, PutsThePairOnTheSkipOperandOfAnAdditionOnly) {
  const Placement p = placed(parse_graph(kBlock, ops()), "tensorrt").placement;
  EXPECT_THAT(names(p), testing::ElementsAre("x", "r", "h"));
  EXPECT_EQ(p.tensors[1].readers.size(), 2u);  // the depthwise convolution and the addition
}

TEST(Placement, PresetsKeepDepthwiseConvolutionsInFloat) {
  const Placement p = placed(parse_graph(kBlock, ops()), "tensorrt", {.presets = {"depthwise"}}).placement;
  EXPECT_THAT(names(p), testing::ElementsAre("x", "r", "h"));
  EXPECT_EQ(p.tensors[1].readers.size(), 1u);
  EXPECT_EQ(p.products.size(), 2u);
  const Placement stem = placed(parse_graph(kBlock, ops()), "tensorrt", {.presets = {"stem"}}).placement;
  EXPECT_EQ(stem.tensors.size(), 3u);  // 16 channels are no image
}

/// QLinearConv and QLinearAdd need a pair behind: on the convolutions' results and on what the addition reads.
TEST(Placement, OnnxRuntimeWantsPairsOnResultsToo) {
  const Placement p = placed(parse_graph(kBlock, ops()), "onnxruntime").placement;
  EXPECT_THAT(names(p), testing::ElementsAre("x", "r", "d", "h", "e"));
  EXPECT_EQ(points_of_plan(p), 3u);
}

TEST(Placement, SkipsByPatternOperatorAndNode) {
  const auto products = [](std::vector<std::string> skip, std::vector<std::string> only = {}) {
    return placed(parse_graph(kBlock, ops()), "cpu", {.skip = std::move(skip), .only = std::move(only)})
        .placement.products.size();
  };
  EXPECT_EQ(products({}), 3u);
  EXPECT_EQ(products({"dw"}), 2u);
  EXPECT_EQ(products({"ConvBNAddReLU"}), 2u);
  EXPECT_EQ(products({"ConvBNReLU@dw"}), 2u);
  EXPECT_EQ(products({"Conv"}), 0u);
  EXPECT_EQ(products({}, {"dw"}), 1u);
  try {
    products({"dww"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "unknown_name");
    EXPECT_THAT(error.diagnostic().hint, testing::HasSubstr("dw"));
  }
}

/// What rules and prices add to modules takes no point away: a whole plan has the places of named patterns alone.
TEST(Placement, PointsSurviveWhatGrowsOverThem) {
  const std::vector<std::string> graphs{
      kBlock,
      R"(graph (%x: f32[4,512], %g: f32[4,512]) { %w = const rand<1> : f32[512,512] %v = const rand<2> : f32[512,512]
        %a = sigmoid(%g) %b = mul(%x, %a) %c = tanh(%b) %d = matmul(%c, %w) @"p"(MatMul@17) %e = relu(%d) %f = mul(%e, %a)
        %y = matmul(%f, %v) @"q"(MatMul@17) return %y })",
      R"(graph (%x: f32[1,16,8,8]) { %s = const rand<1> : f32[1,16,1,1] %w = const rand<2> : f32[16,16,1,1]
        %a = mul(%x, %s) %b = relu(%a) %c = conv(%b, %w) @"c"(Conv@17) %p = global_average_pool(%c) %q = sigmoid(%p)
        %m = mul(%c, %q) %y = conv(%m, %w) @"y"(Conv@17) return %y })"};
  for (const std::string& text : graphs) {
    const Graph graph = parse_graph(text, ops());
    const TargetInfo target = parse_target("cpu:avx2");
    Compilation c(graph, target, {});
    c.run_to(Milestone::prepared);
    const PlacementRequest request{.rules = rules_of("cpu"), .min_linear = 0};
    const Placement whole = place(c.prepared, plan_graph(c.prepared, target, {}), request);
    const Placement named = place(c.prepared, make_plan(c.prepared, {.rules = false}), request);
    EXPECT_EQ(names(whole), names(named)) << text;
    EXPECT_EQ(whole.products.size(), named.products.size()) << text;
    for (size_t i = 0; i < whole.tensors.size() && i < named.tensors.size(); ++i)
      EXPECT_EQ(whole.tensors[i].readers, named.tensors[i].readers) << whole.tensors[i].tensor;
  }
}

/// Files of users' own: rows of [[quantize.leave]] leave modules in float by their name and place, one scale is a
/// scalar.
TEST(Placement, ATargetsFileSaysWhatStaysInFloat) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("npu.toml");
  std::ofstream(path)
      << "schema = 1\nkind = \"planning\"\n[device]\nmultiply_adds_per_second = 1e12\n"
         "bytes_per_second = 1e9\nlaunch_seconds = 1e-6\n[quantize]\nactivations = \"int8\"\n"
         "per_channel = false\nequalize_gain = 2.5\npoints = [\"INPUT\"]\n[[quantize.leave]]\nname = \"wide\"\n"
         "topology = \"conv:conv\"\nwhere = [\"conv.group > 1\"]\nwhy = \"it has no groups\"\n";
  const Placement p = placed(parse_graph(kBlock, ops()), path).placement;
  EXPECT_THAT(names(p), testing::ElementsAre("x", "h"));  // the skip operand's point is not used
  ASSERT_EQ(p.left.size(), 1u);
  EXPECT_EQ(p.left[0].reason.code, "target");
  EXPECT_THAT(p.left[0].reason.message, testing::HasSubstr("it has no groups"));
  EXPECT_THAT(p.left[0].reason.message, testing::HasSubstr("npu.toml:1"));
  EXPECT_EQ(placed(parse_graph(kBlock, ops()), path, {.target_leaves = false}).placement.products.size(), 3u);
  EXPECT_FALSE(rules_of(path).per_channel);
  EXPECT_FALSE(rules_of(path).equalize_anywhere);
  EXPECT_EQ(rules_of(path).equalize_gain, 2.5);
}

TEST(Placement, UnknownCompilersAreRefused) {
  try {
    rules_of("tensort");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "unknown_name");
    EXPECT_THAT(error.diagnostic().hint, testing::HasSubstr("tensorrt"));
  }
}

constexpr const char* kGiven = R"(graph (%x: f32[1,16,8,8]) {
  %s = const splat<0.02> : f32[] %z = const splat<0> : u8[] %w = const rand<1> : f32[16,16,1,1]
  %k = const rand<2> : i8[16,16,1,1] %sw = const splat<0.01> : f32[] %v = dequantize_linear(%k, %sw)
  %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
  %a = conv(%d, %v) @"a"(Conv@17) %t = tanh(%a) %y = conv(%t, %w) @"b"(Conv@17) return %y })";

TEST(Placement, AModelWithPairsKeepsThemAndMissingPointsAreListed) {
  const Placement p = placed(parse_graph(kGiven, ops()), "cpu").placement;
  EXPECT_TRUE(p.tensors.empty());
  ASSERT_EQ(p.given.size(), 1u);
  ASSERT_EQ(p.left.size(), 1u);
  EXPECT_EQ(p.left[0].reason.code, "missing_point");
  EXPECT_THAT(p.left[0].reason.message, testing::HasSubstr("'t'"));
  EXPECT_THAT(names(placed(parse_graph(kGiven, ops()), "cpu", {.add_missing = true}).placement),
              testing::ElementsAre("t"));
}

TEST(Placement, OtherFloatsStay) {
  const Placement p =
      placed(parse_graph("graph (%x: f16[1,4,8,8]) { %y = global_average_pool(%x) return %y }", ops()), "tensorrt")
          .placement;
  EXPECT_TRUE(p.tensors.empty());
  ASSERT_EQ(p.left.size(), 1u);
  EXPECT_EQ(p.left[0].reason.code, "not_f32");
}

TEST(Placement, ComputedWeightsStayInFloat) {
  const Placement p =
      placed(parse_graph("graph (%x: f32[1,4,8,8], %w: f32[4,4,1,1]) { %y = conv(%x, %w) return %y }", ops()), "cpu")
          .placement;
  ASSERT_EQ(p.left.size(), 1u);
  EXPECT_EQ(p.left[0].reason.code, "variable_weights");
}

/// A product that no module holds is listed as well, with what keeps it out; one that a model brings quantised is not.
TEST(Placement, ProductsWithoutAModuleAreListed) {
  const Placement p = placed(parse_graph(R"(graph (%x: f32[4,8], %y: f32[8,8], %z: f32[2,4,8], %i: f32[1,4,8,8]) {
        %w = const rand<1> : f32[4,8] %v = const rand<2> : f32[2,8,8] %u = const rand<3> : f32[4,4,2,2]
        %a = gemm(%x, %w) {transA = 1} @"turned"(Gemm@17)
        %b = matmul(%x, %y) @"computed"(MatMul@17)
        %c = matmul(%z, %v) @"batches"(MatMul@17)
        %d = conv_transpose(%i, %u) {strides = [2, 2]} @"grown"(ConvTranspose@17)
        return %a, %b, %c, %d })",
                                         ops()),
                             "tensorrt", {.min_linear = 0})
                          .placement;
  std::map<std::string, std::string> why;
  for (const LeftModule& left : p.left) why[left.id.substr(left.id.find('@') + 1)] = left.reason.code;
  EXPECT_EQ(why, (std::map<std::string, std::string>{{"turned", "gemm_attributes"},
                                                     {"computed", "variable_weights"},
                                                     {"batches", "rank"},
                                                     {"grown", "operator"}}));
  EXPECT_TRUE(p.products.empty());
}

/// A pair that a float product reads, as ONNX Runtime wants behind results, makes no codes of its weights.
TEST(Placement, MultiplyAddsInCodesAreThoseOfBothOperands) {
  const char* two = R"(graph (%x: f32[1,8,4,4]) { %w = const rand<1> : f32[8,8,1,1] %v = const rand<2> : f32[8,8,1,1]
    %a = conv(%x, %w) @"a"(Conv@17) %r = relu(%a) @"r"(Relu@17) %b = conv(%r, %v) @"b"(Conv@17) return %b })";
  for (const auto& [skip, share] : {std::pair{"", 1.0}, {"b", 0.5}, {"a", 0.5}}) {
    PlacementRequest request;
    if (*skip) request.skip = {skip};
    const Placed made = placed(parse_graph(two, ops()), "onnxruntime", request);
    EXPECT_NEAR(multiply_adds_in_codes(made.prepared, made.placement).share(), share, 1e-9) << skip;
  }
}

TEST(Placement, AModuleWithoutPointsIsListed) {
  const Graph graph = parse_graph(
      "graph (%x: f32[1,4,8,8]) { %w = const rand<1> : f32[4,4,1,1] %c = conv(%x, %w) @\"c\"(Conv@17) return %c }",
      ops());
  Placed made = placed(graph, "tensorrt");
  ASSERT_TRUE(made.placement.left.empty());
  for (Candidate& c : made.plan.candidates) c.points.clear();
  const Placement p = place(made.prepared, made.plan, {.rules = rules_of("tensorrt")});
  ASSERT_EQ(p.left.size(), 1u);
  EXPECT_EQ(p.left[0].reason.code, "no_points");
  EXPECT_TRUE(p.tensors.empty());
}

}  // namespace
}  // namespace opfuse::quantization
