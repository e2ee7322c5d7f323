// The ledger beside the launches of the program: a view or one launch is never between two of them. As
// bench/ledger_audit.py, on small models whose nodes passes take apart: projections of attention, codes, narrow images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "driver/compilation.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

using ::testing::HasSubstr;

Compilation lowered_model(const std::string& text, CompilationOptions options = {}, const char* target = "cpu:avx512") {
  Compilation c(parse_graph(text, ops()), parse_target(target), std::move(options));
  c.run_to(Milestone::lowered);
  return c;
}

bool has_source(const Launch& launch, const std::string& node) {
  return std::find(launch.sources.begin(), launch.sources.end(), node) != launch.sources.end();
}

/// Edges said to be one launch or a view although their ends are in launches that have nothing in common.
std::vector<std::string> untrue_edges(const Compilation& c) {
  std::vector<std::string> untrue;
  for (const EdgeVerdict& e : c.plan.edges) {
    if (e.executed != kOneLaunch && e.executed != kView) continue;
    bool makes = false, takes = false, both = false;
    for (const Launch& launch : c.program.launches) {
      const bool first = has_source(launch, e.producer), second = has_source(launch, e.consumer);
      makes |= first, takes |= second, both |= first && second;
    }
    if (makes && takes && !both) untrue.push_back(e.producer + " -> " + e.consumer + ": " + e.executed);
  }
  return untrue;
}

const EdgeVerdict& edge_of(const Compilation& c, const std::string& producer, const std::string& consumer) {
  for (const EdgeVerdict& e : c.plan.edges)
    if (e.producer == producer && e.consumer == consumer) return e;
  throw std::runtime_error("no edge " + producer + " -> " + consumer);
}

/// The in-projection's node has the name of the first of three products, whose results are views of a merged one.
TEST(LedgerLaunches, ANormInFrontOfMergedProjectionsIsALaunchOfItsOwn) {
  const Compilation c = lowered_model(R"(graph (%z: f32[2,5,8]) {
    %g = const splat<1> : f32[8] %h = const splat<0> : f32[8] %x = layer_norm(%z, %g, %h) @"norm"
    %a = const rand<1> : f32[8,8] %b = const rand<2> : f32[8,8] %c = const rand<3> : f32[8,8] %e = const rand<4> : f32[8]
    %l = const dense<2,5,2,4> : i64[4] %i = const splat<0.5> : f32[] %o = const dense<2,5,8> : i64[3]
    %q0 = matmul(%x, %a) @"q" %q1 = add(%q0, %e) %q2 = reshape(%q1, %l) @"heads" %q = transpose(%q2) {perm = [0,2,1,3]}
    %k0 = matmul(%x, %b) @"k" %k1 = reshape(%k0, %l) %k = transpose(%k1) {perm = [0,2,3,1]}
    %v0 = matmul(%x, %c) @"v" %v1 = reshape(%v0, %l) %v = transpose(%v1) {perm = [0,2,1,3]}
    %s = matmul(%q, %k) @"scores" %t = mul(%s, %i) %w = softmax(%t) %r = matmul(%w, %v)
    %p = transpose(%r) {perm = [0,2,1,3]} %y = reshape(%p, %o) return %y })");
  EXPECT_THAT(untrue_edges(c), testing::IsEmpty());
  const EdgeVerdict& edge = edge_of(c, "norm", "q");
  EXPECT_EQ(edge.executed, kTwoLaunches);
  EXPECT_THAT(edge.decline.message, HasSubstr("\"norm\""));
  EXPECT_TRUE(edge.price);
  EXPECT_EQ(edge_of(c, "q", "heads").executed, kTwoLaunches) << "attention reads the projection's memory";
}

/// What the codes stand for is computed where it is read: the two convolutions are apart, and so are the pair's ends.
TEST(LedgerLaunches, CodesBetweenTwoConvolutionsAreStored) {
  const Compilation c = lowered_model(R"(graph (%x: f32[1,16,14,14]) {
    %s = const splat<0.05> : f32[] %z = const splat<128> : u8[] %i = const splat<0> : i8[]
    %wi = const rand<1> : i8[32,16,1,1] %vi = const rand<2> : i8[16,32,1,1]
    %w = dequantize_linear(%wi, %s, %i) %v = dequantize_linear(%vi, %s, %i)
    %xq = quantize_linear(%x, %s, %z) @"first codes" %xd = dequantize_linear(%xq, %s, %z) @"first floats"
    %a = conv(%xd, %w) @"a" %r = relu(%a) @"r"
    %aq = quantize_linear(%r, %s, %z) @"codes" %ad = dequantize_linear(%aq, %s, %z) @"floats"
    %b = conv(%ad, %v) @"b" %bq = quantize_linear(%b, %s, %z) %y = dequantize_linear(%bq, %s, %z) return %y })");
  EXPECT_THAT(untrue_edges(c), testing::IsEmpty());
  EXPECT_EQ(edge_of(c, "a", "r").executed, kOneLaunch);
  EXPECT_EQ(edge_of(c, "floats", "b").executed, kOneLaunch);
  const EdgeVerdict& edge = edge_of(c, "codes", "floats");
  EXPECT_EQ(edge.executed, kTwoLaunches);
  EXPECT_NE(edge.decline.code, "several_launches") << edge.decline.message;
  EXPECT_THAT(edge.decline.message, HasSubstr("\"floats\""));
}

/// The residual stream lies in bf16 alone, and the f32 value between the sum and the rounding has no memory.
TEST(LedgerLaunches, AnImageThatIsStoredInBf16AloneKeepsItsLaunches) {
  const std::string model = R"(graph (%x: f32[1,32,14,14]) {
    %w = const rand<1> : f32[64,32,1,1] %v = const rand<2> : f32[32,64,1,1] %u = const rand<3> : f32[32,32,1,1]
    %s = conv(%x, %u) @"stem" %a = conv(%s, %w) @"a" %r = relu(%a) @"r" %b = conv(%r, %v) @"b" %t = add(%s, %b) @"sum"
    %c = conv(%t, %w) @"c" %y = relu(%c) return %y })";
  CompilationOptions options;
  options.plan.precision = {"bf16"};
  const Compilation c = lowered_model(model, options, "cpu:avx512-bf16");
  EXPECT_TRUE(std::ranges::any_of(c.verdicts, [](const ShapeVerdict& v) { return v.pass == "narrow-streams"; }));
  EXPECT_THAT(untrue_edges(c), testing::IsEmpty());
  EXPECT_EQ(edge_of(c, "stem", "a").executed, kTwoLaunches);
  EXPECT_EQ(edge_of(c, "stem", "sum").executed, kTwoLaunches);
}

}  // namespace
}  // namespace opfuse
