// Channels of very different ranges: equalised models compute the same in float, lose less in codes, and fold factors
// where what makes the tensor takes them.
#include "quantize/equalize.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/fail.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "quantize/quantize_graph.hpp"
#include "quantize/sample_files.hpp"
#include "quantize/search.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse::quantization {
namespace {

/// Channels of `r` differ 256 times in range, and all count the same in the result. `behind` is what stands behind the
/// convolution.
std::string net(const std::string& behind) {
  return R"(graph (%x: f32[1,8,6,6]) {
    %w = const rand<1> : f32[8,8,1,1]
    %b = const rand<2> : f32[8]
    %far = const dense<1,2,4,8,16,64,128,256> : f32[8,1,1]
    %u = const rand<3> : f32[8,8,3,3]
    %near = const dense<1,0.5,0.25,0.125,0.0625,0.015625,0.0078125,0.00390625> : f32[1,8,1,1]
    %v = mul(%u, %near)
    %c = conv(%x, %w, %b) @"a"(Conv@17)
    %m = mul(%c, %far) @"far"(Mul@17)
    %r = )" +
         behind +
         R"(
    %y = conv(%r, %v) @"b"(Conv@17) return %y })";
}

QuantizedModel quantized(const std::string& text, const char* equalize, const char* compiler = "cpu") {
  const Graph graph = parse_graph(text, ops());
  QuantizeOptions options;
  options.compiler = compiler;
  options.min_linear = 0;
  options.equalize = parse_equalize(equalize);
  options.run.threads = 1;
  return quantize_graph(graph, random_samples(graph, 4, 1, {}), options);
}

double sqnr(const Graph& reference, const Graph& other) {
  const std::vector<Tensor> inputs = random_inputs(reference, {.seed = 9});
  const Tensor want = interpret(reference, inputs)[0], got = interpret(other, inputs)[0];
  double signal = 0, noise = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    signal += want.real(i) * want.real(i);
    noise += (want.real(i) - got.real(i)) * (want.real(i) - got.real(i));
  }
  return 10 * std::log10(signal / noise);
}

size_t count(const Graph& graph, const char* op) {
  return static_cast<size_t>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node* node) { return node->is(op); }));
}

TEST(Equalize, FoldsBehindAReluAndKeepsTheFunction) {
  const std::string text = net("relu(%m) @\"r\"(Relu@17)");
  const QuantizedModel made = quantized(text, "auto");
  ASSERT_EQ(made.equalized.size(), 1u);
  EXPECT_TRUE(made.equalized[0].folded);
  EXPECT_GT(made.equalized[0].gain, 3);
  EXPECT_EQ(count(made.reference, "mul"), 0u);  // its own is in the weights already
  const Graph graph = parse_graph(text, ops());
  EXPECT_GT(sqnr(graph, made.reference), 100);
  EXPECT_GT(sqnr(graph, made.graph), sqnr(graph, quantized(text, "off").graph) + 3);
}

/// The module in float multiplies the weights with factors by data without them: the float function stays.
TEST(Equalize, FactorsStayWhereTheSearchLeavesModulesInFloat) {
  for (const char* behind : {"relu(%m) @\"r\"(Relu@17)", "hard_swish(%m) @\"r\"(HardSwish@17)"}) {
    const Graph graph = parse_graph(net(behind), ops());
    QuantizeOptions options;
    options.min_linear = 0;
    options.equalize = parse_equalize("auto");
    options.run.threads = 1;
    const Samples samples = random_samples(graph, 4, 1, {});
    QuantizedModel made = quantize_graph(graph, samples, options);
    ASSERT_EQ(made.equalized.size(), 1u);
    std::vector<size_t> products;
    const auto metric = [&](const QuantizedModel& candidate) {
      products.push_back(candidate.products.size());
      EXPECT_EQ(candidate.equalized.size(), 1u);
      EXPECT_GT(sqnr(graph, candidate.reference), 100);
      const double noise = std::pow(10, -sqnr(graph, candidate.graph) / 20);
      return std::pair{1 - noise, 1.0};
    };
    const Search found = search_modules(graph, samples, options, 1e-6, 2, metric, made);
    EXPECT_EQ(products, (std::vector<size_t>{2, 1, 0, 1})) << behind;  // the last: the other one of the two in codes
    ASSERT_EQ(found.returned.size(), 1u);
    EXPECT_FALSE(found.returned[0].held);
    EXPECT_EQ(found.left.size(), 2u);
    for (size_t i = 1; i < found.frontier.size(); ++i)
      EXPECT_LT(found.frontier[i].drop, found.frontier[i - 1].drop) << behind;
    EXPECT_GT(sqnr(graph, made.graph), 100);
  }
}

TEST(Equalize, MultipliesBehindWhatTakesNoFactors) {
  const std::string text = net("hard_swish(%m) @\"r\"(HardSwish@17)");
  const QuantizedModel made = quantized(text, "auto");
  ASSERT_EQ(made.equalized.size(), 1u);
  EXPECT_FALSE(made.equalized[0].folded);
  EXPECT_EQ(count(made.reference, "mul"), 1u);
  const Graph graph = parse_graph(text, ops());
  EXPECT_GT(sqnr(graph, made.reference), 100);
  EXPECT_GT(sqnr(graph, made.graph), sqnr(graph, quantized(text, "off").graph) + 3);
  for (const char* compiler : {"onnxruntime", "openvino"})
    EXPECT_EQ(quantized(text, "auto", compiler).equalized.size(), 1u) << compiler;
  // a compiler whose file does not take a Mul gets none, unless alpha is given
  EXPECT_TRUE(quantized(text, "auto", "tensorrt").equalized.empty());
  EXPECT_EQ(quantized(text, "0.5", "tensorrt").equalized.size(), 1u);
}

/// Where a Mul costs something it has to gain what the compiler's file says; factors that fold cost nothing.
TEST(Equalize, AMulGainsWhatTheCompilerAsks) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("npu.toml");
  const std::string costs = net("hard_swish(%m) @\"r\"(HardSwish@17)"), folds = net("relu(%m) @\"r\"(Relu@17)");
  const auto equalized = [&](const std::string& text, const char* equalize, const char* says) {
    std::ofstream(path) << "schema = 1\nkind = \"planning\"\n[device]\nmultiply_adds_per_second = 1e12\n"
                           "bytes_per_second = 1e9\nlaunch_seconds = 1e-6\n[quantize]\nactivations = \"uint8\"\n"
                        << says;
    return quantized(text, equalize, path.c_str()).equalized;
  };
  EXPECT_TRUE(equalized(costs, "auto", "").empty());
  const std::vector<EqualizedTensor> any = equalized(costs, "auto", "equalize_anywhere = true\n");
  ASSERT_EQ(any.size(), 1u);
  const std::string less = fmt::format("equalize_anywhere = true\nequalize_gain = {}\n", any[0].gain - 0.1);
  const std::string more = fmt::format("equalize_anywhere = true\nequalize_gain = {}\n", any[0].gain + 0.1);
  EXPECT_EQ(equalized(costs, "auto", less.c_str()).size(), 1u);
  EXPECT_TRUE(equalized(costs, "auto", more.c_str()).empty());
  EXPECT_EQ(equalized(costs, "0.5", more.c_str()).size(), 1u);
  EXPECT_EQ(equalized(folds, "auto", "equalize_anywhere = true\nequalize_gain = 99\n").size(), 1u);
}

TEST(Equalize, LeavesWhatOthersReadBehindThePair) {
  const QuantizedModel made = quantized(R"(graph (%x: f32[1,8,6,6]) {
    %w = const rand<1> : f32[8,8,1,1] %v = const rand<3> : f32[8,8,1,1] %far = const dense<1,2,4,8,16,64,128,256> : f32[8,1,1]
    %m = mul(%x, %far) @"m"(Mul@17) %r = relu(%m) @"r"(Relu@17)
    %c = conv(%r, %w) @"a"(Conv@17) %s = add(%c, %r) @"s"(Add@17) %y = relu(%s) @"y"(Relu@17)
    return %y })",
                                        "auto");
  EXPECT_TRUE(made.equalized.empty());  // the addition reads r too
}

TEST(Equalize, SmoothsAcrossALayerNorm) {
  const std::string text = R"(graph (%x: f32[4,64]) {
    %g = const splat<1> : f32[64] %h = const rand<5> : f32[64] %w = const rand<1> : f32[64,32] %far = const rand<7> : f32[64]
    %e = exp(%far) %f = mul(%e, %e) %k = mul(%f, %f)
    %n = layer_norm(%x, %k, %h) @"n"(LayerNormalization@17) %y = matmul(%n, %w) @"p"(MatMul@17) return %y })";
  const QuantizedModel made = quantized(text, "0.5");
  ASSERT_EQ(made.equalized.size(), 1u);
  EXPECT_TRUE(made.equalized[0].folded);
  EXPECT_GT(sqnr(parse_graph(text, ops()), made.reference), 100);
}

TEST(Equalize, DepthwiseWeightsTakeRangesAsTheyAre) {
  const std::string text = R"(graph (%x: f32[1,8,6,6]) {
    %w = const rand<1> : f32[8,8,1,1] %v = const rand<3> : f32[8,1,3,3] %far = const dense<1,2,4,8,16,64,128,256> : f32[8,1,1]
    %c = conv(%x, %w) @"a"(Conv@17) %m = mul(%c, %far) @"m"(Mul@17) %r = relu(%m) @"r"(Relu@17)
    %d = conv(%r, %v) {pads = [1,1,1,1], group = 8} @"dw"(Conv@17)
    %near = const dense<1,0.5,0.25,0.125,0.0625,0.015625,0.0078125,0.00390625> : f32[8,1,1]
    %y = mul(%d, %near) @"y"(Mul@17) return %y })";
  const QuantizedModel made = quantized(text, "auto");
  ASSERT_EQ(made.equalized.size(), 1u);
  EXPECT_EQ(made.equalized[0].alpha, 1);
  const Graph graph = parse_graph(text, ops());
  EXPECT_GT(sqnr(graph, made.graph), sqnr(graph, quantized(text, "off").graph) + 15);
}

TEST(Equalize, RefusesWhatIsNoAlpha) {
  for (const char* text : {"1.5", "-1", "yes", "0.5x", ""}) EXPECT_THROW(parse_equalize(text), Error) << text;
}

/// The second look multiplies what the model without factors makes; the model with them has the same ranges.
TEST(Equalize, RangesAreThoseOfTheEqualisedModel) {
  for (const char* behind : {"relu(%m) @\"r\"(Relu@17)", "hard_swish(%m) @\"r\"(HardSwish@17)"}) {
    SCOPED_TRACE(behind);
    const Graph graph = parse_graph(net(behind), ops());
    const QuantizedModel made = quantized(net(behind), "auto");
    ASSERT_EQ(made.equalized.size(), 1u);
    const size_t at = made.equalized[0].index;
    const TensorStatistics& found = made.calibration.tensors[at];
    EXPECT_EQ(found.samples, 4);
    const std::vector<std::string> names = names_of(made.placement);
    ObservedModel model(made.reference, names, {.threads = 1});
    const Calibration own = calibrate(made.reference, made.placement, calibrated_tensors(made.placement), model,
                                      random_samples(graph, 4, 1, {}), {.run = {.threads = 1}});
    for (size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(made.calibration.tensors[i].tensor, own.tensors[i].tensor);
      EXPECT_NEAR(made.calibration.tensors[i].high, own.tensors[i].high, 1e-5 * own.tensors[i].high) << names[i];
      EXPECT_NEAR(made.calibration.tensors[i].low, own.tensors[i].low, 1e-5 * own.tensors[i].high) << names[i];
      EXPECT_EQ(made.calibration.tensors[i].elements, own.tensors[i].elements) << names[i];
    }
  }
}

}  // namespace
}  // namespace opfuse::quantization
