// From samples to a graph with pairs: its form for each compiler, its values against the float model, and what goes
// wrong with data.
#include "quantize/quantize_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/fail.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "quantize/agreement.hpp"
#include "quantize/sample_files.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse::quantization {
namespace {

constexpr const char* kNet = R"(graph (%x: f32[1,16,8,8]) {
  %w = const rand<1> : f32[16,16,3,3] %b = const rand<2> : f32[16] %v = const rand<3> : f32[16,16,1,1]
  %m = const rand<4> : f32[16] %one = const splat<1.5> : f32[16] %zero = const splat<0> : f32[16]
  %c = conv(%x, %w, %b) {pads = [1,1,1,1]} @"a"(Conv@17) %r = relu(%c) @"a_relu"(Relu@17)
  %e = conv(%r, %v) @"b"(Conv@17) %n = batch_norm(%e, %one, %m, %zero, %one) @"bn"(BatchNormalization@17)
  %s = add(%n, %r) @"add"(Add@17) %y = relu(%s) @"y_relu"(Relu@17) return %y })";

Samples samples_of(std::vector<std::vector<Tensor>> list, std::string identity = "") {
  return {.read = [list](size_t i) -> std::optional<std::vector<Tensor>> {
            if (i >= list.size()) return std::nullopt;
            return list[i];
          },
          .count = list.size(),
          .identity = std::move(identity)};
}

QuantizeOptions options_for(const std::string& compiler) {
  QuantizeOptions options;
  options.compiler = compiler;
  options.min_linear = 0;
  options.run.threads = 2;
  return options;
}

QuantizedModel quantized(const std::string& text, const QuantizeOptions& options, size_t samples = 4) {
  const Graph graph = parse_graph(text, ops());
  return quantize_graph(graph, random_samples(graph, samples, 1, {{"n", 1}}), options);
}

/// SQNR of the first output by the interpreter, dB.
double sqnr(const Graph& reference, const Graph& quantised, uint64_t seed = 77) {
  const std::vector<Tensor> inputs = random_inputs(reference, {.seed = seed, .symbols = {{"n", 1}}});
  const Tensor want = interpret(reference, inputs)[0], got = interpret(quantised, inputs)[0];
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

class Compilers : public testing::TestWithParam<const char*> {};

TEST_P(Compilers, GetTheirCodes) {
  const CompilerRules rules = rules_of(GetParam());
  const QuantizedModel made = quantized(kNet, options_for(GetParam()));
  ASSERT_NO_THROW(verify(made.graph));
  EXPECT_GT(sqnr(parse_graph(kNet, ops()), made.graph), 30);
  EXPECT_EQ(count(made.graph, "batch_norm"), 0u);  // folded into codes
  EXPECT_EQ(made.placement.points, 3u);
  EXPECT_EQ(count(made.graph, "quantize_linear"), rules.results ? 3u : 2u);
  for (const Node* node : made.graph.nodes()) {
    if (node->is("quantize_linear")) {
      const bool behind_relu = node->input(0)->producer && node->input(0)->producer->is("relu");
      EXPECT_EQ(node->output()->type.dtype, dtype_of(rules.activations, !behind_relu));
      EXPECT_TRUE((rules.affine && rules.activations == DataCodes::u8) || node->input(2)->constant->integer(0) == 0);
    }
    if (!node->is("conv")) continue;
    EXPECT_TRUE(node->input(1)->producer->is("dequantize_linear"));
    EXPECT_EQ(node->input(1)->producer->input(1)->constant->elements(), 16);
    EXPECT_EQ(rules.bias_codes, !node->input(2)->is_constant());
    if (rules.bias_codes) {
      EXPECT_EQ(node->input(2)->producer->input(0)->type.dtype, DType::i32);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Compilers, testing::Values("cpu", "tensorrt", "openvino", "onnxruntime", "cuda"));

TEST(QuantizeGraph, SkipOperandHasThePairNotTheBranch) {
  const QuantizedModel made = quantized(kNet, options_for("tensorrt"));
  const Node* add = made.graph.find_node("add");
  ASSERT_TRUE(add);
  EXPECT_TRUE(add->input(0)->producer->is("conv"));
  EXPECT_TRUE(add->input(1)->producer->is("dequantize_linear"));
}

TEST(QuantizeGraph, IsTheSameAtAnyNumberOfThreads) {
  QuantizeOptions options = options_for("cpu");
  options.bias_correction = true;
  options.run.threads = 1;
  const QuantizedModel one = quantized(kNet, options);
  options.run.threads = 4;
  const QuantizedModel four = quantized(kNet, options);
  std::string why;
  EXPECT_TRUE(equal(one.graph, four.graph, &why)) << why;
  EXPECT_EQ(one.calibration.tensors, four.calibration.tensors);
}

TEST(QuantizeGraph, SizesOfSamplesMayDiffer) {
  const std::string text = R"(graph (%x: f32[n,16]) {
    %w = const rand<1> : f32[16,16] %b = const rand<2> : f32[16]
    %y = gemm(%x, %w, %b) {transB = true} return %y })";
  const Graph graph = parse_graph(text, ops());
  std::vector<std::vector<Tensor>> list;
  for (int64_t n : {20, 30, 20}) list.push_back(random_inputs(graph, {.seed = 1, .symbols = {{"n", n}}}));
  const QuantizedModel made = quantize_graph(graph, samples_of(list), options_for("cpu"));
  EXPECT_EQ(made.calibration.tensors.at(0).elements, 70 * 16);
  EXPECT_GT(sqnr(graph, made.graph), 30);
  EXPECT_EQ(made.graph.inputs()[0]->type, graph.inputs()[0]->type);
}

/// Mean of the result's error by channel, the largest of all channels.
double mean_error(const Graph& reference, const Graph& quantised) {
  std::vector<double> sums(16);
  for (uint64_t seed = 100; seed < 116; ++seed) {
    const std::vector<Tensor> inputs = random_inputs(reference, {.seed = seed, .ranges = {{"x", {0.5, 1.5}}}});
    const Tensor want = interpret(reference, inputs)[0], got = interpret(quantised, inputs)[0];
    for (int64_t i = 0; i < want.elements(); ++i) sums[static_cast<size_t>(i / 64 % 16)] += got.real(i) - want.real(i);
  }
  double most = 0;
  for (double sum : sums) most = std::max(most, std::fabs(sum) / (16 * 64));
  return most;
}

TEST(QuantizeGraph, BiasCorrectionTakesTheMeanErrorBack) {
  for (const char* bias : {"%b", "_"}) {
    const std::string operands = std::string(bias) == "_" ? "%x, %w" : "%x, %w, %b";
    const Graph graph = parse_graph(
        "graph (%x: f32[1,16,8,8]) { %w = const rand<1> : f32[16,16,3,3] %b = const rand<2> : "
        "f32[16] %y = conv(" +
            operands + ") {pads = [1,1,1,1]} return %y }",
        ops());
    std::vector<std::vector<Tensor>> list;
    for (uint64_t seed = 1; seed < 9; ++seed)
      list.push_back(random_inputs(graph, {.seed = seed, .ranges = {{"x", {0.5, 1.5}}}}));
    for (const char* compiler : {"cpu", "tensorrt"}) {
      QuantizeOptions options = options_for(compiler);
      const double plain = mean_error(graph, quantize_graph(graph, samples_of(list), options).graph);
      options.bias_correction = true;
      EXPECT_LT(mean_error(graph, quantize_graph(graph, samples_of(list), options).graph), plain / 3) << compiler;
    }
  }
}

TEST(QuantizeGraph, BiasOfAMatMulIsCorrectedInTheAdditionBehindIt) {
  const std::string text = R"(graph (%x: f32[8,32]) {
    %w = const rand<1> : f32[32,16] %b = const rand<2> : f32[16] %p = matmul(%x, %w) @"mm"(MatMul@17)
    %y = add(%p, %b) @"bias"(Add@17) return %y })";
  QuantizeOptions options = options_for("cpu");
  options.bias_correction = true;
  const QuantizedModel made = quantized(text, options);
  EXPECT_GT(made.products.at(0).bias_shift, 0);
  EXPECT_FALSE(made.graph.find_node("bias")->input(1)->constant->same_bits(
      *parse_graph(text, ops()).find_node("bias")->input(1)->constant));
}

/// ONNX Runtime makes a Gemm of MatMul and Add, and a Gemm of codes only where its bias has codes.
TEST(QuantizeGraph, BiasOfAMatMulIsCodesForOnnxRuntime) {
  const std::string text = R"(graph (%x: f32[4,16]) { %w = const rand<1> : f32[16,8] %b = const rand<2> : f32[8]
    %p = matmul(%x, %w) @"p"(MatMul@17) %y = add(%p, %b) @"y"(Add@17) return %y })";
  for (const auto& [compiler, codes] : {std::pair{"onnxruntime", true}, {"cpu", false}, {"openvino", false}}) {
    const QuantizedModel made = quantized(text, options_for(compiler));
    const Value* bias = made.graph.find_node("y")->input(1);
    ASSERT_EQ(bias->producer != nullptr, codes) << compiler;
    EXPECT_GT(sqnr(made.reference, made.graph), 30);
    if (!codes) continue;
    EXPECT_EQ(bias->producer->input(0)->type.dtype, DType::i32);
    const Node* product = made.graph.find_node("p");
    for (int64_t c = 0; c < 8; ++c)
      EXPECT_FLOAT_EQ(static_cast<float>(bias->producer->input(1)->constant->real(c)),
                      static_cast<float>(product->input(0)->producer->input(1)->constant->real(0) *
                                         product->input(1)->producer->input(1)->constant->real(c)));
  }
}

/// Which runs every operator by itself.
TEST(QuantizeGraph, SpelledOutHardSwishIsTwoOperatorsForOnnxRuntime) {
  const std::string text = R"(graph (%x: f32[1,4,6,6]) { %w = const rand<1> : f32[4,4,3,3]
    %three = const splat<3> : f32[] %none = const splat<0> : f32[] %six = const splat<6> : f32[]
    %c = conv(%x, %w) @"c"(Conv@17) %s = add(%c, %three) @"s"(Add@17) %g = clip(%s, %none, %six) @"g"(Clip@17)
    %m = mul(%c, %g) @"m"(Mul@17) %h = div(%m, %six) @"h"(Div@17) %y = conv(%h, %w) @"y"(Conv@17) return %y })";
  for (const auto& [compiler, two] : {std::pair{"onnxruntime", true}, {"cpu", false}, {"openvino", false}}) {
    const QuantizedModel made = quantized(text, options_for(compiler));
    ASSERT_NO_THROW(verify(made.graph));
    EXPECT_EQ(count(made.reference, "hard_sigmoid"), two ? 1u : 0u) << compiler;
    EXPECT_EQ(count(made.reference, "div") + count(made.reference, "clip"), 0u) << compiler;  // a composite otherwise
    EXPECT_GT(sqnr(parse_graph(text, ops()), made.reference), 120) << compiler;
    EXPECT_GT(sqnr(made.reference, made.graph), 30) << compiler;
  }
}

/// Which joins Add and LayerNormalization to one slow operator. A Sum with a constant, or with a pair behind it, is not
/// of that form.
TEST(QuantizeGraph, ResidualAdditionBeforeANormIsASumForOnnxRuntime) {
  const std::string text = R"(graph (%x: f32[4,16]) { %w = const rand<1> : f32[16,16] %g = const rand<2> : f32[16]
    %e = add(%x, %g) @"e"(Add@17) %f = layer_norm(%e, %g) @"f"(LayerNormalization@17)
    %p = matmul(%f, %w) @"p"(MatMul@17) %r = add(%p, %f) @"r"(Add@17)
    %y = layer_norm(%r, %g) @"y"(LayerNormalization@17) return %y })";
  for (const auto& [compiler, sums] : {std::pair{"onnxruntime", 1u}, {"cpu", 0u}, {"openvino", 0u}}) {
    const QuantizedModel made = quantized(text, options_for(compiler));
    ASSERT_NO_THROW(verify(made.graph));
    EXPECT_EQ(count(made.graph, "sum"), sums) << compiler;
    EXPECT_EQ(count(made.graph, "add"), 2 - sums) << compiler;
    EXPECT_GT(sqnr(made.reference, made.graph), 30) << compiler;
  }
}

TEST(QuantizeGraph, DeadChannelsAndLargeBiasesHaveCodes) {
  const std::string text = R"(graph (%x: f32[1,4,4,4]) {
    %w = const splat<0> : f32[4,4,1,1] %b = const splat<1000> : f32[4] %y = conv(%x, %w, %b) @"c"(Conv@17) return %y })";
  const QuantizedModel made = quantized(text, options_for("cpu"));
  ASSERT_EQ(made.warnings.size(), 1u);
  EXPECT_THAT(made.warnings[0], testing::HasSubstr("4 output channels of c have no weight but 0"));
  EXPECT_GT(sqnr(parse_graph(text, ops()), made.graph), 90);
}

/// What is made of one constant twice, and what a model calls by the names that would be made.
TEST(QuantizeGraph, NamesAreMadeOnce) {
  const std::string text = R"(graph (%x: f32[1,8,6,6]) {
    %w = const rand<1> : f32[8,8,1,1] %b = const rand<2> : f32[8] %big = const splat<100000> : f32[8]
    %w_scale = const rand<3> : f32[8,8,1,1] %value_2 = const rand<4> : f32[8,8,1,1]
    %c = conv(%x, %w, %b) @"1"(Conv@17) %w_quantized = relu(%c) @"2"(Relu@17)
    %e = conv(%w_quantized, %w, %b) @"3"(Conv@17) %x_quantized = relu(%e) @"4"(Relu@17)
    %f = conv(%x_quantized, %w, %big) @"5"(Conv@17) %x_scale = relu(%f) @"6"(Relu@17)
    %g = conv(%x_scale, %w_scale) @"7"(Conv@17) %x_equalized = relu(%g) @"8"(Relu@17)
    %x_dequantized = conv(%x_equalized, %value_2) @"9"(Conv@17) return %x_dequantized })";
  for (const char* compiler : {"cpu", "onnxruntime", "tensorrt"})
    for (const char* equalize : {"off", "1"}) {
      QuantizeOptions options = options_for(compiler);
      options.bias_correction = true;
      options.equalize = parse_equalize(equalize);
      const QuantizedModel made = quantized(text, options);
      EXPECT_NO_THROW(verify(made.graph)) << compiler;
      EXPECT_EQ(made.graph.outputs()[0]->name, "x_dequantized");
      EXPECT_GT(sqnr(parse_graph(text, ops()), made.graph), 25) << compiler;
    }
}

/// Codes have no NaN: what reads one stays in float, and is the same as before.
TEST(QuantizeGraph, NumbersThatAreNotFiniteStayInFloat) {
  const std::string text = R"(graph (%x: f32[1,4,4,4]) {
    %w = const rand<1> : f32[4,4,1,1] %b = const rand<2> : f32[4] %v = const rand<3> : f32[4,4,1,1]
    %c = conv(%x, %w, %b) @"a"(Conv@17) %r = relu(%c) @"r"(Relu@17) %y = conv(%x, %v) @"b"(Conv@17) return %r, %y })";
  for (const char* constant : {"w", "b", "v"}) {
    Graph graph = parse_graph(text, ops());
    Tensor broken = graph.find_value(constant)->constant->clone();
    broken.set_real(1, *constant == 'b' ? std::nan("") : HUGE_VAL);
    graph.find_value(constant)->constant = broken;
    const QuantizedModel made = quantize_graph(graph, random_samples(graph, 2, 1, {}), options_for("cpu"));
    ASSERT_EQ(made.placement.left.size(), 1u) << constant;
    EXPECT_EQ(made.placement.left[0].reason.code, "not_finite");
    const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 3});
    const size_t left = *constant == 'v' ? 1 : 0;
    const Tensor want = interpret(graph, inputs)[left], got = interpret(made.graph, inputs)[left];
    EXPECT_TRUE(want.same_bits(got)) << constant;
  }
}

/// A BatchNorm whose numbers f32 does not have stays behind the codes.
TEST(QuantizeGraph, ANormThatIsNotFiniteIsNotFolded) {
  const Graph graph = parse_graph(R"(graph (%x: f32[1,4,4,4]) {
    %w = const rand<1> : f32[4,4,1,1] %one = const splat<1> : f32[4] %minus = const splat<-1> : f32[4]
    %c = conv(%x, %w) @"a"(Conv@17) %y = batch_norm(%c, %one, %one, %one, %minus) @"n"(BatchNormalization@17) return %y })",
                                  ops());
  const QuantizedModel made = quantize_graph(graph, random_samples(graph, 2, 1, {}), options_for("cpu"));
  EXPECT_EQ(count(made.graph, "batch_norm"), 1u);
  EXPECT_EQ(made.products.size(), 1u);
}

TEST(QuantizeGraph, ConstantDataAreWarnedOf) {
  const Graph graph = parse_graph(kNet, ops());
  const QuantizedModel made =
      quantize_graph(graph, samples_of({{Tensor(DType::f32, {1, 16, 8, 8})}}), options_for("cpu"));
  ASSERT_FALSE(made.warnings.empty());
  EXPECT_EQ(made.warnings[0], "'x' is 0 in every sample");
}

TEST(QuantizeGraph, NothingToQuantiseIsSaid) {
  const QuantizedModel made = quantized("graph (%x: f32[4]) { %y = tanh(%x) return %y }", options_for("cpu"));
  EXPECT_THAT(made.warnings, testing::ElementsAre(testing::HasSubstr("no module is quantised")));
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.diagnostic().name + ": " + error.diagnostic().message;
  }
  return "no error";
}

TEST(QuantizeGraph, BadSamplesAreNamed) {
  const Graph graph = parse_graph(kNet, ops());
  const auto with = [&](Tensor tensor) {
    return message_of([&] { quantize_graph(graph, samples_of({random_inputs(graph), {tensor}}), options_for("cpu")); });
  };
  Tensor nan(DType::f32, {1, 16, 8, 8});
  nan.set_real(5, std::nan(""));
  EXPECT_THAT(with(nan), testing::HasSubstr("sample 1 has NaN or infinite numbers in 'x'"));
  EXPECT_THAT(message_of([&] {
                measure_agreement(graph, graph, samples_of({random_inputs(graph), {nan}}), {.threads = 1});
              }),
              testing::HasSubstr("sample 1 has NaN or infinite numbers in 'x'"));
  Tensor huge(DType::f32, {1, 16, 8, 8});
  for (int64_t i = 0; i < huge.elements(); ++i) huge.set_real(i, 3e38);
  EXPECT_THAT(with(huge), testing::HasSubstr("becomes NaN or infinite for sample 1"));
  EXPECT_THAT(with(Tensor(DType::f32, {1, 3, 8, 8})), testing::HasSubstr("bad_binding"));
  EXPECT_THAT(message_of([&] { quantize_graph(graph, samples_of({}), options_for("cpu")); }),
              testing::HasSubstr("no sample"));
}

/// A tensor that is one number, a channel without weights, an empty tensor, negative numbers alone: codes or a warning,
/// never a scale of 0 or NaN.
TEST(QuantizeGraph, OddDataGetUsableScales) {
  const std::string text = R"(graph (%x: f32[1,4,4,4], %z: f32[n,4]) {
    %w = const rand<1> : f32[4,4,1,1] %b = const splat<0> : f32[4] %dead = const splat<0> : f32[4,4,1,1] %v = const rand<3> : f32[4,4]
    %c = conv(%x, %dead, %b) @"dead"(Conv@17) %r = relu(%c) @"r"(Relu@17) %y = conv(%r, %w, %b) @"after"(Conv@17)
    %e = exp(%x) %m = neg(%e) %u = conv(%m, %w) @"negative"(Conv@17) %p = matmul(%z, %v) @"never"(MatMul@17)
    return %y, %u, %p })";
  const Graph graph = parse_graph(text, ops());
  const auto sample = [&](uint64_t seed) { return random_inputs(graph, {.seed = seed, .symbols = {{"n", 0}}}); };
  for (const char* equalize : {"off", "auto", "0.5"}) {
    QuantizeOptions options = options_for("cpu");
    options.bias_correction = true;
    options.equalize = parse_equalize(equalize);
    const QuantizedModel made = quantize_graph(graph, samples_of({sample(1), sample(2)}), options);
    for (const Codes& codes : made.codes) EXPECT_TRUE(std::isfinite(codes.scale) && codes.scale > 0);
    EXPECT_THAT(made.warnings, testing::Contains(testing::HasSubstr("'r' is 0 in every sample")));
    EXPECT_THAT(made.warnings, testing::Contains(testing::HasSubstr("4 output channels of dead have no weight but 0")));
    EXPECT_THAT(made.warnings, testing::Contains(testing::HasSubstr("'z' had no element in any sample")));
    const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 3, .symbols = {{"n", 2}}});
    for (const Tensor& result : interpret(made.graph, inputs))
      for (int64_t i = 0; i < result.elements(); ++i) ASSERT_TRUE(std::isfinite(result.real(i)));
  }
}

TEST(QuantizeGraph, CompilersWithoutZeroPointsRefuseUnsignedCodes) {
  QuantizeOptions options = options_for("tensorrt");
  for (const DataCodes codes : {DataCodes::u8, DataCodes::by_sign}) {
    options.activations = codes;
    EXPECT_THAT(message_of([&] { quantized(kNet, options); }), testing::HasSubstr("zero point 0 only"));
  }
}

TEST(QuantizeGraph, CodesMayBeChosenByTheSignsOfData) {
  QuantizeOptions options = options_for("openvino");
  options.activations = parse_data_codes("by-sign");
  const QuantizedModel made = quantized(kNet, options);
  std::set<DType> seen;
  for (const Node* node : made.graph.nodes()) {
    if (!node->is("quantize_linear")) continue;
    const bool behind_relu = node->input(0)->producer && node->input(0)->producer->is("relu");
    EXPECT_EQ(node->output()->type.dtype, behind_relu ? DType::u8 : DType::i8);
    EXPECT_EQ(node->input(2)->constant->integer(0), 0);
    seen.insert(node->output()->type.dtype);
  }
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_THAT(message_of([] { parse_data_codes("by_sign"); }), testing::HasSubstr("u8, s8 or by-sign"));
}

/// Calibration ends at its third sample; what was found before is not found again.
TEST(QuantizeGraph, AScalesFileIsTakenUp) {
  const test::TemporaryFolder folder;
  const Graph graph = parse_graph(kNet, ops());
  QuantizeOptions options = options_for("cpu");
  options.scales_file = folder.path("s.json");
  options.seconds_between_files = 0;
  const Samples whole = random_samples(graph, 4, 1, {});
  size_t reads = 0;
  Samples counted = whole;
  counted.read = [&](size_t i) {
    if (++reads == 3) throw fail(E::cancelled, "power is gone");
    return whole.read(i);
  };
  EXPECT_THROW(quantize_graph(graph, counted, options), Error);
  reads = 100;
  const QuantizedModel resumed = quantize_graph(graph, counted, options);
  EXPECT_EQ(reads, 103u);  // two samples, and the end
  EXPECT_EQ(resumed.calibration.taken_up, 2u);
  Samples none;
  none.read = [](size_t) -> std::optional<std::vector<Tensor>> { return std::nullopt; };
  const QuantizedModel again = quantize_graph(graph, none, options);
  options.scales_file.clear();
  const QuantizedModel anew = quantize_graph(graph, whole, options);
  EXPECT_TRUE(equal(resumed.graph, anew.graph));
  EXPECT_TRUE(equal(again.graph, anew.graph));
}

/// Ctrl-C comes by what watches, long before it is time to write the file.
TEST(QuantizeGraph, AnInterruptionKeepsWhatWasFound) {
  const test::TemporaryFolder folder;
  const Graph graph = parse_graph(kNet, ops());
  QuantizeOptions options = options_for("cpu");
  options.scales_file = folder.path("s.json");
  options.run.progress = [](const std::string& step, size_t done, size_t) {
    if (step == "calibrate" && done == 3) throw fail(E::cancelled, "interrupted");
  };
  const Samples samples = random_samples(graph, 6, 1, {});
  EXPECT_THROW(quantize_graph(graph, samples, options), Error);
  options.run.progress = nullptr;
  EXPECT_EQ(quantize_graph(graph, samples, options).calibration.taken_up, 3u);
}

TEST(QuantizeGraph, OtherScalesFilesAreRefused) {
  const test::TemporaryFolder folder;
  const Graph graph = parse_graph(kNet, ops());
  QuantizeOptions options = options_for("cpu");
  options.scales_file = folder.path("s.json");
  quantize_graph(graph, random_samples(graph, 2, 1, {}), options);
  const auto with = [&](uint64_t seed) {
    return message_of([&] { quantize_graph(graph, random_samples(graph, 2, seed, {}), options); });
  };
  EXPECT_EQ(with(1), "no error");
  EXPECT_THAT(with(2), testing::HasSubstr("other samples"));
  folder.write("s.json", "{\"schema\": \"opfuse.scales/2\"}");
  EXPECT_THAT(with(1), testing::HasSubstr("bad_file"));
  folder.write("s.json", "garbage");
  EXPECT_THAT(with(1), testing::HasSubstr("bad_file"));
}

TEST(Agreement, NamesWhereItIsLost) {
  const Graph graph = parse_graph(kNet, ops());
  QuantizedModel made = quantized(kNet, options_for("cpu"));
  const Samples samples = random_samples(graph, 3, 9, {});
  const Agreement good = measure_agreement(made.reference, made.graph, samples, {});
  ASSERT_EQ(good.layers.size(), 2u);
  EXPECT_FALSE(good.first_below(20));
  EXPECT_GT(good.outputs.at(0).noise.sqnr(), 30);
  EXPECT_NEAR(good.outputs[0].noise.sqnr(), sqnr(graph, made.graph), 6);
  EXPECT_GT(good.outputs[0].cosine, 0.999);
  EXPECT_EQ(good.outputs[0].worst.size(), 3u);
  for (Node* node : made.graph.nodes())  // the second pair with a scale that is far too large
    if (node->is("quantize_linear") && node->input(0)->name == "r") {
      Tensor coarse = Tensor::scalar(DType::f32, node->input(1)->constant->real(0) * 40);
      node->input(1)->constant = coarse;
    }
  const Agreement bad = measure_agreement(made.reference, made.graph, samples, {});
  ASSERT_TRUE(bad.first_below(20));
  EXPECT_EQ(bad.first_below(20)->tensor, "r");
  EXPECT_EQ(bad.largest_drop()->tensor, "r");
  EXPECT_GT(bad.largest_drop()->drop(), 20);
}

}  // namespace
}  // namespace opfuse::quantization
