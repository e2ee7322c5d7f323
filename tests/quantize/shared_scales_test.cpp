// Scales across concats, pools and additions: the same codes on both sides, what that costs, and values as before.
#include "quantize/shared_scales.hpp"

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
#include "testing/temporary_folder.hpp"

namespace opfuse::quantization {
namespace {

/// Two branches of different ranges are joined; the first has a pair of its own.
constexpr const char* kConcat = R"(graph (%x: f32[1,8,6,6]) {
  %w = const rand<1> : f32[8,8,1,1] %v = const rand<2> : f32[8,8,1,1] %u = const rand<3> : f32[8,16,1,1] %ten = const splat<3> : f32[]
  %a = conv(%x, %w) @"a"(Conv@17) %r = relu(%a) @"r"(Relu@17)
  %b = conv(%r, %v) @"b"(Conv@17) %t = mul(%b, %ten) @"t"(Mul@17) %s = relu(%t) @"s"(Relu@17)
  %c = concat(%r, %s) {axis = 1} @"c"(Concat@17) %y = conv(%c, %u) @"y"(Conv@17) return %y })";

constexpr const char* kResidual = R"(graph (%x: f32[1,8,6,6]) {
  %w = const rand<1> : f32[8,8,1,1] %v = const rand<2> : f32[8,8,1,1] %u = const rand<3> : f32[8,8,1,1]
  %a = conv(%x, %w) @"a"(Conv@17) %r = relu(%a) @"r"(Relu@17)
  %b = conv(%r, %v) @"b"(Conv@17) %s = add(%b, %r) @"s"(Add@17) %t = relu(%s) @"t"(Relu@17)
  %y = conv(%t, %u) @"y"(Conv@17) return %y })";

QuantizedModel quantized(const char* text, const char* sharing) {
  const Graph graph = parse_graph(text, ops());
  QuantizeOptions options;
  options.sharing = parse_sharing(sharing);
  options.run.threads = 1;
  return quantize_graph(graph, random_samples(graph, 4, 1, {}), options);
}

Codes codes_of(const QuantizedModel& made, const std::string& tensor) {
  for (size_t i = 0; i < made.codes.size(); ++i)
    if (made.placement.tensors[i].tensor == tensor) return made.codes[i];
  ADD_FAILURE() << "no pair on " << tensor;
  return {};
}

TEST(SharedScales, AConcatJoinsCodes) {
  const QuantizedModel made = quantized(kConcat, "moves");
  ASSERT_EQ(made.shared.size(), 1u);
  EXPECT_EQ(codes_of(made, "r"), codes_of(made, "c"));
  EXPECT_EQ(codes_of(made, "s"), codes_of(made, "c"));  // had no pair of its own
  for (const Value* operand : made.graph.find_node("c")->inputs)
    EXPECT_TRUE(operand->producer->is("dequantize_linear"));
  EXPECT_GT(made.shared[0].most(), 0.5);  // r is the narrower one
}

/// The first of the three has no negative number: by signs alone its codes would be u8.
TEST(SharedScales, SignsAreSharedToo) {
  const std::string text = std::string(kConcat).replace(std::string_view(kConcat).find("relu(%t)"), 8, "tanh(%t)");
  const Graph graph = parse_graph(text, ops());
  QuantizeOptions options;
  const test::TemporaryFolder folder;
  options.compiler = folder.path("signed.toml");
  std::ofstream(options.compiler) << "schema = 1\nkind = \"planning\"\n[device]\nmultiply_adds_per_second = 1e12\n"
                                     "bytes_per_second = 1e9\nlaunch_seconds = 1e-6\n[quantize]\n"
                                     "activations = \"by_sign\"\n";
  options.run.threads = 1;
  const QuantizedModel made = quantize_graph(graph, random_samples(graph, 4, 1, {}), options);
  ASSERT_EQ(made.shared.size(), 1u);
  EXPECT_EQ(codes_of(made, "r").dtype, DType::i8);
  for (const char* other : {"s", "c"}) EXPECT_EQ(codes_of(made, other), codes_of(made, "r"));
}

/// Codes that are joined are those that would be made of what is joined.
TEST(SharedScales, JoiningCodesChangesNoValue) {
  const QuantizedModel made = quantized(kConcat, "moves");
  Graph float_concat = made.graph.clone();
  Node* concat = float_concat.find_node("c");
  for (size_t i = 0; i < 2; ++i)
    float_concat.set_input(concat, i, concat->inputs[i]->producer->input(0)->producer->input(0));
  const std::vector<Tensor> inputs = random_inputs(made.graph, {.seed = 5});
  const Tensor a = interpret(made.graph, inputs)[0], b = interpret(float_concat, inputs)[0];
  for (int64_t i = 0; i < a.elements(); ++i) ASSERT_EQ(a.real(i), b.real(i));
}

/// 3,000 times as wide: the step of the result is beyond all of what the narrow operand's other reader would see.
TEST(SharedScales, AnOperandThatWouldBeRuinedKeepsItsOwn) {
  const std::string text = std::string(kConcat).replace(std::string_view(kConcat).find("splat<3>"), 8, "splat<9999>");
  const QuantizedModel made = quantized(text.c_str(), "moves");
  EXPECT_EQ(codes_of(made, "s"), codes_of(made, "c"));
  EXPECT_LT(codes_of(made, "r").scale, codes_of(made, "c").scale / 100);
  ASSERT_EQ(made.shared.size(), 1u);
  EXPECT_EQ(made.shared[0].tensors.size(), 2u);
  EXPECT_LT(made.shared[0].most(), 1);
}

/// What only a concat reads has the steps of the result in any case: the others are not clipped for its sake.
TEST(SharedScales, WhatOnlyAConcatReadsRuinsNothing) {
  const std::string text = std::string(kConcat).replace(std::string_view(kConcat).find("splat<3>"), 8, "splat<1e-5>");
  const QuantizedModel made = quantized(text.c_str(), "moves");
  EXPECT_EQ(codes_of(made, "s"), codes_of(made, "c"));
  EXPECT_EQ(codes_of(made, "r"), codes_of(made, "c"));
  const QuantizedModel alone = quantized(text.c_str(), "off");
  EXPECT_NEAR(codes_of(made, "r").scale / codes_of(alone, "r").scale, 1, 0.1);
}

TEST(SharedScales, OffLeavesEachItsOwn) {
  const QuantizedModel made = quantized(kConcat, "off");
  EXPECT_TRUE(made.shared.empty());
  EXPECT_NE(codes_of(made, "r"), codes_of(made, "c"));
  EXPECT_TRUE(made.graph.find_node("c")->input(1)->producer->is("relu"));
}

TEST(SharedScales, AdditionsOnlyWhenAskedFor) {
  EXPECT_TRUE(quantized(kResidual, "moves").shared.empty());
  const QuantizedModel made = quantized(kResidual, "adds");
  ASSERT_EQ(made.shared.size(), 1u);
  EXPECT_TRUE(made.shared[0].adds);
  EXPECT_EQ(codes_of(made, "r"), codes_of(made, "t"));
  EXPECT_GT(made.shared[0].most(), 0);
}

TEST(SharedScales, APoolKeepsTheScale) {
  const QuantizedModel made = quantized(R"(graph (%x: f32[1,8,6,6]) {
    %w = const rand<1> : f32[8,8,1,1] %v = const rand<2> : f32[8,8,1,1] %u = const rand<3> : f32[8,8,1,1]
    %a = conv(%x, %w) @"a"(Conv@17) %r = relu(%a) @"r"(Relu@17)
    %p = max_pool(%r) {kernel_shape = [2,2], strides = [2,2]} @"p"(MaxPool@17)
    %b = conv(%r, %v) @"b"(Conv@17) %y = conv(%p, %u) @"y"(Conv@17) return %b, %y })",
                                        "moves");
  ASSERT_EQ(made.shared.size(), 1u);
  EXPECT_EQ(codes_of(made, "r"), codes_of(made, "p"));
}

TEST(SharedScales, RefusesOtherWords) { EXPECT_THROW(parse_sharing("all"), Error); }

}  // namespace
}  // namespace opfuse::quantization
