// Models of f16 and bf16: the interface stays, what has no such form stays between casts.
#include "quantize/narrow_floats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/fail.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "ops/registry.hpp"

namespace opfuse::quantization {
namespace {

constexpr const char* kNet = R"(graph (%x: f32[1,16,8,8]) {
  %w = const rand<1> : f32[16,16,3,3] %b = const rand<2> : f32[16] %c = conv(%x, %w, %b) {pads = [1,1,1,1]} @"a"(Conv@17)
  %r = relu(%c) @"r"(Relu@17) %s = add(%r, %x) @"s"(Add@17) return %s, %r })";

double sqnr(const Graph& reference, const Graph& other) {
  const std::vector<Tensor> inputs = random_inputs(reference, {.seed = 5});
  const std::vector<Tensor> want = interpret(reference, inputs), got = interpret(other, inputs);
  double signal = 0, noise = 0;
  for (size_t o = 0; o < want.size(); ++o)
    for (int64_t i = 0; i < want[o].elements(); ++i) {
      signal += want[o].real(i) * want[o].real(i);
      noise += std::pow(want[o].real(i) - got[o].real(i), 2);
    }
  return 10 * std::log10(signal / noise);
}

TEST(NarrowFloats, TheInterfaceStays) {
  for (const auto& [to, least, most] : {std::tuple{DType::f16, 60.0, 90.0}, std::tuple{DType::bf16, 40.0, 60.0}}) {
    const NarrowedModel made = narrow_floats(parse_graph(kNet, ops()), to);
    EXPECT_EQ(made.bytes_before, 2 * made.bytes_after);
    EXPECT_EQ(made.casts, 3u);  // x, s, r
    const Graph read = read_onnx_bytes(write_onnx_bytes(made.graph));
    EXPECT_EQ(read.inputs()[0]->type, made.reference.inputs()[0]->type);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(read.outputs()[i]->type, made.reference.outputs()[i]->type);
      EXPECT_EQ(read.outputs()[i]->name, made.reference.outputs()[i]->name);
    }
    const double db = sqnr(made.reference, read);
    EXPECT_GT(db, least);
    EXPECT_LT(db, most);  // constants were rounded
  }
}

TEST(NarrowFloats, NumbersBeyondTheRangeAreSaid) {
  const Graph graph =
      parse_graph(R"(graph (%x: f32[4]) { %m = const splat<-1e38> : f32[] %e = const splat<1e-12> : f32[]
    %a = max(%x, %m) @"a"(Max@17) %y = add(%a, %e) @"b"(Add@17) return %y })",
                  ops());
  const NarrowedModel made = narrow_floats(graph, DType::f16);
  ASSERT_EQ(made.warnings.size(), 2u);
  EXPECT_THAT(made.warnings[0], testing::HasSubstr("65504"));
  EXPECT_THAT(made.warnings[1], testing::HasSubstr("5.96046e-08"));
  EXPECT_TRUE(narrow_floats(graph, DType::bf16).warnings.empty());
}

TEST(NarrowFloats, WeightsThatVanishAreSaid) {
  const Graph model = parse_graph(R"(graph (%x: f32[2,4]) {
    %w = const splat<1e-9> : f32[4,4] %z = const splat<0> : f32[2,4] %c = const splat<1e9> : f32[2,4]
    %p = matmul(%x, %w) %q = mul(%p, %c) %y = add(%q, %z) return %y })",
                                  ops());
  const NarrowedModel half = narrow_floats(model, DType::f16);
  EXPECT_THAT(half.warnings, testing::Contains("all 16 numbers of 'w' become 0 in f16"));
  EXPECT_THAT(half.warnings, testing::Not(testing::Contains(testing::HasSubstr("'z'"))));
  EXPECT_TRUE(narrow_floats(model, DType::bf16).warnings.empty());
}

TEST(NarrowFloats, WhatHasNoSuchFormStaysBetweenCasts) {
  const Graph graph = parse_graph(R"(graph (%x: f32[3]) { %z = const splat<0> : f32[] %one = const splat<1> : f32[]
    %n = const splat<3> : f32[] %s = mul(%n, %one) @"s"(Mul@17) %r = range(%z, %s, %one) @"r"(Range@17)
    %y = add(%x, %r) @"y"(Add@17) return %y })",
                                  ops());
  const NarrowedModel made = narrow_floats(graph, DType::f16);
  EXPECT_THAT(made.kept, testing::ElementsAre("r"));
  EXPECT_GT(sqnr(made.reference, read_onnx_bytes(write_onnx_bytes(made.graph))), 50);
}

TEST(NarrowFloats, RefusesWhatIsNoFloatModel) {
  EXPECT_THROW(narrow_floats(parse_graph("graph (%x: i32[3]) { %y = neg(%x) return %y }", ops()), DType::f16), Error);
  EXPECT_THROW(narrow_floats(parse_graph(R"(graph (%x: f32[3]) { %s = const splat<1> : f32[] %z = const splat<0> : u8[]
    %q = quantize_linear(%x, %s, %z) %y = dequantize_linear(%q, %s, %z) return %y })",
                                         ops()),
                             DType::f16),
               Error);
  EXPECT_THROW(parse_narrow("f8"), Error);
}

}  // namespace
}  // namespace opfuse::quantization
