// In whom a module is computed in codes: one graph for each reason.
#include "quantize/int8_support.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/registry.hpp"

namespace opfuse::quantization {
namespace {

struct Case {
  const char* name;
  const char *codes, *zero, *bias, *behind;
  const char* expected;  // "compiler:code" of those that refuse
};

std::string text_of(const Case& c) {
  return fmt::format(R"(graph (%x: f32[1,4,8,8]) {{
  %s = const splat<0.02> : f32[] %z = const splat<{1}> : {0}[] %k = const rand<2> : i8[4,4,1,1] %sw = const splat<0.01> : f32[]
  %v = dequantize_linear(%k, %sw) {2}
  %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
  %a = conv(%d, %v, %b) @"a"(Conv@17) {3} }})",
                     c.codes, c.zero, c.bias, c.behind);
}

constexpr const char* kFloatBias = "%b = const rand<3> : f32[4]";
constexpr const char* kCodedBias =
    "%j = const splat<1> : i32[4] %sb = const splat<0.0002> : f32[] %b = dequantize_linear(%j, %sb)";
constexpr const char* kEnd = "return %a";
constexpr const char* kQuantized = "%e = quantize_linear(%a, %s, %z) %f = dequantize_linear(%e, %s, %z) return %f";

class Int8Support : public testing::TestWithParam<Case> {};

TEST_P(Int8Support, SaysWhoRefusesAndWhy) {
  const Graph graph = parse_graph(text_of(GetParam()), ops());
  std::vector<CompilerRules> rules;
  for (const char* name : {"cpu", "cuda", "tensorrt", "openvino", "onnxruntime"}) rules.push_back(rules_of(name));
  const std::vector<ModuleSupport> modules = int8_support(graph, make_plan(graph, {.rules = false}), rules);
  ASSERT_EQ(modules.size(), 1u);
  std::string refused;
  for (const auto& [compiler, why] : modules[0].compilers)
    if (why) refused += fmt::format("{}{}:{}", refused.empty() ? "" : " ", compiler, why->code);
  EXPECT_EQ(refused, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Reasons, Int8Support,
    testing::Values(Case{"unsigned", "u8", "7", kCodedBias, kQuantized, "cuda:dequantized tensorrt:unsigned_codes"},
                    Case{"no_result", "u8", "7", kFloatBias, kEnd,
                         "cuda:dequantized tensorrt:unsigned_codes onnxruntime:no_result_pair"},
                    Case{"signed", "i8", "0", kFloatBias, kQuantized, "cuda:dequantized"},
                    Case{"zero_point", "i8", "3", kFloatBias, kQuantized, "cuda:dequantized tensorrt:zero_point"},
                    Case{"bias", "i8", "0", kCodedBias, kQuantized, "cuda:dequantized tensorrt:bias_codes"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Int8Support, FloatModelsHaveNone) {
  const Graph graph =
      parse_graph("graph (%x: f32[1,4,8,8]) { %w = const rand<1> : f32[4,4,1,1] %y = conv(%x, %w) return %y }", ops());
  EXPECT_TRUE(int8_support(graph, make_plan(graph, {.rules = false}), {rules_of("cpu")}).empty());
}

TEST(Int8Support, PairsOfWeightsThatSixteenBitsDoNotHoldAreNamed) {
  for (const auto& [code, named] : {std::pair{64, false}, std::pair{65, true}}) {
    const Graph graph = parse_graph(fmt::format(R"(graph (%x: f32[1,4,8,8]) {{
      %s = const splat<0.02> : f32[] %z = const splat<7> : u8[] %k = const splat<{}> : i8[4,4,1,1]
      %sw = const splat<0.01> : f32[] %v = dequantize_linear(%k, %sw)
      %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z) %a = conv(%d, %v) @"a"(Conv@17) return %a }})",
                                                code),
                                    ops());
    const auto modules = int8_support(graph, make_plan(graph, {.rules = false}),
                                      {rules_of("cpu"), rules_of("openvino"), rules_of("onnxruntime")});
    ASSERT_EQ(modules.size(), 1u);
    const char* said = "sums of pairs may saturate without VNNI in openvino";
    EXPECT_EQ(text_of(modules[0]).find(said) != std::string::npos, named) << text_of(modules[0]);
    EXPECT_EQ(modules[0].may_saturate, named ? std::vector<std::string>{"openvino"} : std::vector<std::string>{});
  }
}

TEST(Int8Support, OfChannelsWithTheirOwnScalesDepthwiseProductsAlone) {
  for (const auto& [weights, attributes, expected] :
       {std::tuple{"[4,1,1,1]", "{group = 4}",
                   "MODULE ConvBN@a: int8 in cpu, openvino; f32 in tensorrt [scale_per_channel"},
        std::tuple{"[4,4,1,1]", "", "MODULE ConvBN@a: f32 in cpu, openvino, tensorrt [scale_per_channel"}}) {
    const Graph graph = parse_graph(fmt::format(R"(graph (%x: f32[1,4,8,8]) {{
      %s = const dense<0.01,0.02,0.03,0.05> : f32[4] %z = const splat<0> : i8[4] %k = const rand<1> : i8{}
      %sw = const splat<0.01> : f32[] %v = dequantize_linear(%k, %sw)
      %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z) %a = conv(%d, %v) {} @"a"(Conv@17) return %a }})",
                                                weights, attributes),
                                    ops());
    const auto modules = int8_support(graph, make_plan(graph, {.rules = false}),
                                      {rules_of("cpu"), rules_of("openvino"), rules_of("tensorrt")});
    ASSERT_EQ(modules.size(), 1u);
    EXPECT_THAT(text_of(modules[0]), testing::HasSubstr(expected));
  }
}

TEST(Int8Support, AProductWithoutAPairIsFloatEverywhere) {
  const Graph graph = parse_graph(R"(graph (%x: f32[1,4,8,8]) {
    %s = const splat<0.02> : f32[] %z = const splat<0> : u8[] %w = const rand<1> : f32[4,4,1,1]
    %y = conv(%x, %w) @"a"(Conv@17) %q = quantize_linear(%y, %s, %z) %d = dequantize_linear(%q, %s, %z) return %d })",
                                  ops());
  const auto modules = int8_support(graph, make_plan(graph, {.rules = false}), {rules_of("cpu"), rules_of("tensorrt")});
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_THAT(text_of(modules[0]), testing::HasSubstr("f32 in cpu, tensorrt [no_pair"));
}

}  // namespace
}  // namespace opfuse::quantization
