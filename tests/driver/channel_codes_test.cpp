// Data quantised with a scale for each channel, as NNCF does in front of depthwise convolutions.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "driver/compilation.hpp"
#include "driver/proof_case.hpp"
#include "proof/compare.hpp"

namespace opfuse {
namespace {

/// dense<0.01, 0.02 ...> for so many channels: no two neighbours are equal, none is a power of two.
std::string scales(int64_t channels, double first = 0.011, const char* type = "f32") {
  std::vector<double> values;
  for (int64_t c = 0; c < channels; ++c) values.push_back(first * (1 + static_cast<double>(c % 7)));
  return fmt::format("const dense<{}> : {}[{}]", fmt::join(values, ","), type, channels);
}

/// 1x1 convolution -> codes by channel -> what reads them -> codes.
struct Net {
  std::string zeros = "const splat<0> : u8[24]", reader = "conv(%d, %w) {pads = [1,1,1,1], group = 24}",
              weights = "[24,1,3,3]", last = "%r";
};

std::string text_of(const Net& n) {
  return fmt::format(R"(graph (%x: f32[1,16,9,9]) {{
  %s = const splat<0.02> : f32[] %z = const splat<7> : u8[] %t = const splat<0.05> : f32[]
  %a = const rand<1> : i8[24,16,1,1] %as = {0} %b = dequantize_linear(%a, %as) {{axis = 0}}
  %c = const rand<2> : i8{1} %cs = {2} %w = dequantize_linear(%c, %cs) {{axis = 0}}
  %n = const rand<3> : f32[24] %ds = {3} %dz = {4}
  %q = quantize_linear(%x, %s, %z) %e = dequantize_linear(%q, %s, %z)
  %v = conv(%e, %b, %n) %u = relu(%v)
  %p = quantize_linear(%u, %ds, %dz) {{axis = 1}} %d = dequantize_linear(%p, %ds, %dz) {{axis = 1}}
  %o = {5} %r = relu(%o) %y = quantize_linear({6}, %t, %z) return %y }})",
                     scales(24), n.weights, scales(24, 0.007), scales(24, 0.013), n.zeros, n.reader, n.last);
}

Compilation compiled(const std::string& text) {
  CompilationOptions options;
  options.artifact.cache = false;
  return compile_graph(parse_graph(text, ops()), parse_target("cpu:avx2"), options);
}

std::vector<ShapeVerdict> precisions(const Compilation& c) { return of_pass(c.verdicts, "sum-codes"); }

bool divides(const Program& program) {
  bool found = false;
  for (const Launch& launch : program.launches)
    for (const Stage& stage : launch.region.stages)
      for (const StageOutput& output : stage.outputs)
        if (!stage.reductions.empty()) output.value.visit([&](const Expr& e) { found |= e.op() == ExprOp::div; });
  return found;
}

void expect_proven(const std::string& text) {
  for (const char* target : {"cpu:baseline", "cpu:avx2", "host"})
    for (const auto& g : ProofCase(text, target).compare())
      EXPECT_TRUE(g.ok) << target << " " << g.name << "\n" << text;
}

TEST(ChannelCodes, OfDepthwiseLayersAreSummed) {
  const char* stride = "conv(%d, %w) {pads = [0,0,1,1], strides = [2,2], group = 24}";
  for (const Net& net : {Net{}, Net{.zeros = "const splat<3> : u8[24]"}, Net{.reader = stride}}) {
    const Compilation c = compiled(text_of(net));
    ASSERT_EQ(precisions(c).size(), 2u);
    for (const ShapeVerdict& v : precisions(c)) EXPECT_FALSE(v.refused) << v.refused->message;
    for (const Buffer& b : c.program.buffers)
      EXPECT_FALSE(b.kind == BufferKind::intermediate && is_float(b.type.dtype));
    EXPECT_FALSE(divides(c.program));
    expect_proven(text_of(net));
  }
}

/// A residual has its own factor for each channel.
TEST(ChannelCodes, JoinAsAResidual) {
  const Net net{.reader = "conv(%e, %b, %n)", .last = "%sum"};
  std::string text = text_of(net);
  text.replace(text.find("%r = relu(%o)"), 13, "%r = relu(%o) %sum = add(%r, %d)");
  const Compilation c = compiled(text);
  for (const Buffer& b : c.program.buffers) EXPECT_FALSE(b.kind == BufferKind::intermediate && is_float(b.type.dtype));
  expect_proven(text);
}

TEST(ChannelCodes, StayInFloatWhereASumIsOfSeveral) {
  std::string zeros = "const dense<1";
  for (int64_t c = 1; c < 24; ++c) zeros += fmt::format(",{}", c % 3);
  const Net cases[] = {{.reader = "conv(%d, %w)", .weights = "[8,24,3,3]"}, {.zeros = zeros + "> : u8[24]"}};
  for (Net net : cases) {
    std::string text = text_of(net);
    if (net.weights[1] == '8')
      text.replace(text.find("%cs = "), 6 + scales(24, 0.007).size(), "%cs = " + scales(8, 0.007));
    const Compilation c = compiled(text);
    ASSERT_EQ(precisions(c).size(), 2u);
    const std::optional<Decline> why = precisions(c)[1].refused;
    ASSERT_TRUE(why) << text;
    EXPECT_EQ(why->code, "float_operand");
    expect_proven(text);
  }
}

/// Steps by row and factors by column are as many where the matrix is square.
TEST(ChannelCodes, OfRowsAreNotThoseOfColumns) {
  const std::string text = fmt::format(R"(graph (%x: i8[14,14]) {{
    %s = const splat<0.02> : f32[] %z = const splat<3> : i8[] %t = {0} %h = const splat<0> : i8[14]
    %c = const rand<1> : i8[14,14] %sw = {1} %w = dequantize_linear(%c, %sw) {{axis = 1}}
    %b = const rand<2> : f32[14] %d = dequantize_linear(%x, %s, %z)
    %v = gemm(%d, %w, %b) %y = quantize_linear(%v, %t, %h) {{axis = 0}} return %y }})",
                                       scales(14, 0.5), scales(14, 0.01));
  EXPECT_FALSE(precisions(compiled(text)).at(0).refused);
  expect_proven(text);
}

/// A BatchNorm of columns takes a factor of columns into its own, not one of rows.
TEST(ChannelCodes, OfRowsStayBesideFactorsOfColumns) {
  for (int axis : {0, 1}) {
    const std::string text = fmt::format(R"(graph (%x: i8[14,14]) {{
      %s = const splat<0.02> : f32[] %z = const splat<3> : i8[] %t = {0} %h = const splat<0> : i8[14] %e = const splat<0.5> : f32[]
      %c = const rand<1> : i8[14,14] %sw = const splat<0.01> : f32[] %w = dequantize_linear(%c, %sw) %d = dequantize_linear(%x, %s, %z)
      %v = matmul(%d, %w) %q = quantize_linear(%v, %t, %h) {{axis = {1}}} %f = dequantize_linear(%q, %t, %h) {{axis = {1}}}
      %g = {2} %m = const rand<4> : f32[14] %r = const splat<2.3> : f32[14] %n = batch_norm(%f, %g, %m, %m, %r)
      %y = quantize_linear(%n, %e, %z) return %y }})",
                                         scales(14, 0.3), axis, scales(14, 0.7));
    const Compilation c = compiled(text);
    EXPECT_FALSE(precisions(c).at(0).refused);
    EXPECT_EQ(c.program.launches.size(), 1u);
    EXPECT_FALSE(divides(c.program));
    expect_proven(text);
  }
}

}  // namespace
}  // namespace opfuse
