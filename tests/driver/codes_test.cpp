// Quantised products from graph to kernel: which become sums of codes, and what stays in f32 for which reason.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "driver/compilation.hpp"
#include "driver/conversion_tax.hpp"
#include "driver/one_projection.hpp"
#include "driver/proof_case.hpp"
#include "proof/compare.hpp"

namespace opfuse {
namespace {

struct Net {
  std::string data = "u8", zero = "7", weights = "i8", weight_zero = "0", weight_scale = "const splat<0.01> : f32[]",
              attributes = "{pads = [1,1,1,1]}", shape = "[24,16,3,3]", codes = "rand<1>";
};

std::string text_of(const Net& n) {
  return fmt::format(R"(graph (%x: f32[2,16,9,9]) {{
  %s = const splat<0.02> : f32[] %z = const splat<{1}> : {0}[] %t = const splat<0.05> : f32[]
  %c = const {7} : {2}{6} %zw = const splat<{3}> : {2}[] %sw = {4}
  %w = dequantize_linear(%c, %sw, %zw) {{axis = 0}}
  %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
  %v = conv(%d, %w) {5} %r = relu(%v)
  %y = quantize_linear(%r, %t, %z) return %y }})",
                     n.data, n.zero, n.weights, n.weight_zero, n.weight_scale, n.attributes, n.shape, n.codes);
}

Compilation compiled(const std::string& text, const NodePairs& no_fuse = {}) {
  CompilationOptions options;
  options.artifact.cache = false;
  options.plan.no_fuse = no_fuse;
  return compile_graph(parse_graph(text, ops()), parse_target("cpu:avx2"), options);
}

/// What products of quantised operands are computed in.
std::vector<ShapeVerdict> precisions(const Compilation& c) { return of_pass(c.verdicts, "sum-codes"); }

TEST(Codes, AreSummedWhereBothFactorsAreDequantised) {
  const Compilation c = compiled(text_of({}));
  ASSERT_EQ(precisions(c).size(), 1u);
  EXPECT_FALSE(precisions(c)[0].refused) << precisions(c)[0].refused->message;
  EXPECT_EQ(c.program.launches.size(), 2u);  // the caller's numbers to codes, the convolution
  for (const Buffer& b : c.program.buffers) EXPECT_FALSE(b.kind == BufferKind::intermediate && is_float(b.type.dtype));
}

/// i8 codes lie as u8 ones do.
TEST(Codes, OfSignedImagesHaveRegisterTiles) {
  for (const char* shape : {"[1,3,33,33]", "[1,16,33,33]"}) {
    const std::string text = fmt::format(R"(graph (%x: f32{0}) {{
      %s = const splat<0.02> : f32[] %z = const splat<0> : i8[] %c = const rand<1> : i8[32,{1},3,3] %w = dequantize_linear(%c, %s)
      %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z) %v = conv(%d, %w) {{pads = [1,1,1,1], strides = [2,2]}}
      %y = quantize_linear(%v, %s, %z) return %y }})",
                                         shape, std::string(shape) == "[1,3,33,33]" ? 3 : 16);
    EXPECT_EQ(compiled(text).program.launches.back().schedule.skeleton, "contraction") << shape;
    for (const auto& g : ProofCase(text).compare()) EXPECT_TRUE(g.ok) << g.name << " " << shape;
  }
}

TEST(Codes, DepthwisePaddingOfAnotherCodeTakesPart) {
  const Compilation c = compiled(text_of({.attributes = "{pads = [1,1,1,1], group = 16}", .shape = "[16,1,3,3]"}));
  ASSERT_EQ(precisions(c).size(), 1u);
  EXPECT_FALSE(precisions(c)[0].refused) << precisions(c)[0].refused->message;
}

TEST(Codes, LaunchesThatOnlyConvertAreTold) {
  const Compilation c = compiled(text_of({}));
  const ConversionTax tax = conversion_tax(c.program, c.target);
  ASSERT_EQ(tax.launches.size(), 1u);  // the caller's numbers to codes
  EXPECT_GT(tax.microseconds, 0);
  EXPECT_LT(tax.microseconds, tax.all);
  const Compilation floats = compiled("graph (%x: f32[4,4]) { %y = relu(%x) return %y }");
  EXPECT_TRUE(conversion_tax(floats.program, floats.target).launches.empty());
}

TEST(Codes, ResidualAndPairInFrontOfItJoin) {
  const Compilation c = compiled(R"(graph (%x: f32[1,32,6,6]) {
    %s = const splat<0.02> : f32[] %z = const splat<0> : u8[] %t = const splat<0.05> : f32[] %h = const splat<128> : u8[]
    %c = const rand<1> : i8[32,32,1,1] %sw = const splat<0.01> : f32[] %w = dequantize_linear(%c, %sw)
    %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
    %v = conv(%d, %w) %m = quantize_linear(%v, %t, %h) %md = dequantize_linear(%m, %t, %h)
    %a = add(%md, %d) %r = relu(%a) %y = quantize_linear(%r, %t, %z) return %y })");
  ASSERT_EQ(precisions(c).size(), 1u);
  EXPECT_FALSE(precisions(c)[0].refused);
  EXPECT_EQ(c.program.launches.size(), 2u);
}

/// Quantisers write scale and bias of a BatchNorm as codes too, and a pair in front of it: one multiplication and one
/// addition per element remain, no division.
TEST(Codes, BatchNormOfQuantisedConstantsIsOneFactorPerChannel) {
  for (const bool pair : {true, false}) {
    const std::string text = fmt::format(R"(graph (%x: f32[1,32,6,6]) {{
      %s = const splat<0.02> : f32[] %z = const splat<0> : u8[] %t = const splat<0.05> : f32[] %h = const splat<128> : u8[]
      %c = const rand<1> : i8[32,32,1,1] %sw = const splat<0.01> : f32[] %w = dequantize_linear(%c, %sw)
      %gc = const rand<2> : i8[32] %g = dequantize_linear(%gc, %sw) %bc = const rand<3> : i32[32] %b = dequantize_linear(%bc, %sw)
      %m = const rand<4> : f32[32] %r = const splat<2.3> : f32[32]
      %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z) %v = conv(%d, %w)
      %p = quantize_linear(%v, %t, %h) %e = dequantize_linear(%p, %t, %h)
      %n = batch_norm({}, %g, %b, %m, %r) %y = quantize_linear(%n, %t, %h) return %y }})",
                                         pair ? "%e" : "%v");
    const Compilation c = compiled(text);
    EXPECT_EQ(c.program.launches.size(), 2u);
    int multiplied = 0;
    for (const Launch& launch : c.program.launches)
      for (const StageOutput& output : launch.region.stages.back().outputs)
        if (!launch.region.stages.back().reductions.empty())
          output.value.visit([&](const Expr& e) {
            EXPECT_FALSE(e.op() == ExprOp::div || e.op() == ExprOp::sqrt) << print(launch.region);
            multiplied += e.op() == ExprOp::mul;
          });
    EXPECT_EQ(multiplied, pair ? 2 : 1);
    for (const auto& g : ProofCase(text).compare()) EXPECT_TRUE(g.ok) << g.name << " " << pair;
  }
}

/// [N, 1] has as many numbers as a row where there are N rows, and is added to rows, not to columns.
TEST(Codes, ABiasOfRowsIsNoRow) {
  for (const char* bias : {"const rand<2> : f32[6,1]", "const rand<2> : f32[6,6]", "dequantize_linear(%bc, %sb)"}) {
    const std::string text = fmt::format(R"(graph (%x: i8[6,9]) {{
      %s = const splat<0.02> : f32[] %z = const splat<3> : i8[] %t = const splat<0.05> : f32[] %h = const splat<37> : i8[]
      %c = const rand<1> : i8[9,6] %sw = const splat<0.01> : f32[] %w = dequantize_linear(%c, %sw)
      %bc = const rand<3> : i32[6,1] %sb = const splat<0.0002> : f32[]
      %b = {} %d = dequantize_linear(%x, %s, %z)
      %v = gemm(%d, %w, %b) %y = quantize_linear(%v, %t, %h) return %y }})",
                                         bias);
    const Compilation c = compiled(text);
    ASSERT_EQ(precisions(c).size(), 1u);
    EXPECT_TRUE(precisions(c)[0].refused) << bias;
    for (const auto& g : ProofCase(text).compare()) EXPECT_TRUE(g.ok) << g.name << " " << bias;
  }
}

/// Images of the caller are dense and stay in float; rows of a matrix product lie side by side, however many there are.
TEST(Codes, RowsOfTheCallerAreSummed) {
  const std::string text = R"(graph (%x: i8[2,6,9]) {
    %s = const splat<0.02> : f32[] %z = const splat<127> : i8[] %t = const splat<0.05> : f32[] %h = const splat<37> : i8[]
    %c = const rand<1> : i8[9,6] %sw = const splat<0.01> : f32[] %w = dequantize_linear(%c, %sw)
    %d = dequantize_linear(%x, %s, %z) %v = matmul(%d, %w) %y = quantize_linear(%v, %t, %h) return %y })";
  const Compilation c = compiled(text);
  ASSERT_EQ(precisions(c).size(), 1u);
  EXPECT_FALSE(precisions(c)[0].refused) << precisions(c)[0].refused->message;
  for (const auto& g : ProofCase(text).compare()) EXPECT_TRUE(g.ok) << g.name;
}

TEST(Codes, StayInFloatForAReason) {
  const std::pair<const char*, Net> cases[] = {
      {"asymmetric_weights", {.weight_zero = "3", .codes = "splat<-126>"}},
      {"asymmetric_weights", {.weights = "u8", .codes = "splat<200>"}},
      {"wide_codes", {.data = "u16"}},
      // dilated taps, padded with code 7
      {"no_kernel", {.attributes = "{pads = [2,2,2,2], dilations = [2,2], group = 16}", .shape = "[16,1,3,3]"}},
  };
  for (const auto& [code, net] : cases) {
    const Compilation c = compiled(text_of(net));
    ASSERT_EQ(precisions(c).size(), 1u) << code;
    ASSERT_TRUE(precisions(c)[0].refused) << code;
    EXPECT_EQ(precisions(c)[0].refused->code, code);
  }
}

/// What was stored as real numbers before is so again.
TEST(Codes, DequantisingStaysWhereNothingSumsCodes) {
  Net net;
  net.weight_zero = "3", net.codes = "splat<-126>";
  EXPECT_EQ(compiled(text_of(net)).program.launches.size(), 2u);
}

/// 255 * 128 * 100000 is beyond i32; the sum is bounded by the weights themselves.
TEST(Codes, StayInFloatWhereThePassIsSwitchedOff) {
  CompilationOptions options;
  options.no_pass = {"sum-codes"};
  Compilation c(parse_graph(text_of({}), ops()), parse_target("cpu:avx2"), options);
  c.run_to(Milestone::shaped);
  ASSERT_FALSE(precisions(c).empty());
  for (const ShapeVerdict& verdict : precisions(c)) EXPECT_EQ(verdict.code(), "disabled");
}

TEST(Codes, SumsThatMayLeaveI32StayInFloat) {
  const auto net = [](const char* weight) {
    return fmt::format(R"(graph (%x: f32[2,100000]) {{
      %s = const splat<0.02> : f32[] %z = const splat<0> : u8[] %c = const splat<{}> : i8[100000,8]
      %w = dequantize_linear(%c, %s) %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
      %v = matmul(%d, %w) %y = quantize_linear(%v, %s, %z) return %y }})",
                       weight);
  };
  EXPECT_EQ(precisions(compiled(net("-128"))).at(0).refused->code, "accumulator");
  EXPECT_FALSE(precisions(compiled(net("-64"))).at(0).refused);
}

/// Between equal steps the largest number is the largest code.
constexpr const char* kPooled = R"(graph (%x: f32[1,16,12,12]) {
  %s = const splat<0.02> : f32[] %z = const splat<3> : u8[] %t = const splat<0.05> : f32[] %o = const splat<0> : u8[]
  %c = const rand<1> : i8[32,16,1,1] %e = const rand<2> : i8[16,32,1,1] %sw = const splat<0.01> : f32[]
  %w = dequantize_linear(%c, %sw) %u = dequantize_linear(%e, %sw)
  %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
  %v = conv(%d, %w) %r = relu(%v) %rq = quantize_linear(%r, %t, %o) %rd = dequantize_linear(%rq, %t, %o)
  %m = max_pool(%rd) {kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]}
  %mq = quantize_linear(%m, %t, %o) %md = dequantize_linear(%mq, %t, %o)
  %y = conv(%md, %u) return %y })";

TEST(Codes, ArePooledBetweenEqualSteps) {
  const Compilation c = compiled(kPooled);
  EXPECT_EQ(c.program.launches.size(), 4u);
  for (const Buffer& b : c.program.buffers) EXPECT_FALSE(b.kind == BufferKind::intermediate && is_float(b.type.dtype));
}

/// Rows of a table of codes, one step for all or one for each row, multiplied; `table` is what is dequantised.
std::string gathered(const char* scale, const char* table, const char* input = "") {
  return fmt::format(R"(graph (%i: i64[2,5]{2}) {{
    %s = const splat<0.05> : f32[] %z = const splat<3> : u8[] %c = const rand<1> : u8[40,32]
    %ts = {0} %t = dequantize_linear({1}) {{axis = 0}} %g = gather(%t, %i) {{axis = 0}}
    %q = quantize_linear(%g, %s, %z) %d = dequantize_linear(%q, %s, %z)
    %w = const rand<2> : i8[32,16] %wz = const splat<0> : i8[] %v = dequantize_linear(%w, %s, %wz)
    %m = matmul(%d, %v) %y = relu(%m) return %y }})",
                     scale, table, input);
}

/// The mean of an image is quantised again behind a Flatten: by the kernel of the mean.
TEST(Codes, AreMadeInFrontOfAView) {
  for (const char* step : {"%s", "%t"}) {
    const std::string text = fmt::format(R"(graph (%x: f32[1,32,6,6]) {{
      %s = const splat<0.02> : f32[] %z = const splat<3> : u8[] %t = const splat<0.05> : f32[]
      %c = const rand<1> : i8[32,32,1,1] %e = const rand<2> : i8[10,32] %sw = const splat<0.01> : f32[]
      %w = dequantize_linear(%c, %sw) %u = dequantize_linear(%e, %sw)
      %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z) %v = conv(%d, %w)
      %vq = quantize_linear(%v, %s, %z) %vd = dequantize_linear(%vq, %s, %z) %p = global_average_pool(%vd)
      %pq = quantize_linear(%p, %s, %z) %pd = dequantize_linear(%pq, %s, %z) %f = flatten(%pd)
      %fq = quantize_linear(%f, {0}, %z) %fd = dequantize_linear(%fq, {0}, %z) %y = gemm(%fd, %u) {{transB = true}}
      return %y }})",
                                         step);
    const Compilation c = compiled(text);
    EXPECT_EQ(precisions(c).size(), 2u);
    for (const ShapeVerdict& v : precisions(c)) EXPECT_FALSE(v.refused) << v.refused->message;
    EXPECT_EQ(c.program.launches.size(), 4u);  // the caller's numbers to codes, convolution, mean, classifier
    EXPECT_EQ(conversion_tax(c.program, c.target).launches.size(), 1u);
    for (const Buffer& b : c.program.buffers)
      EXPECT_FALSE(b.kind == BufferKind::intermediate && is_float(b.type.dtype)) << b.name;
    ProofCase built(text);
    for (const GroupComparison& g : built.compare()) EXPECT_TRUE(g.ok) << g.name;
  }
}

TEST(Codes, StayBehindAViewWhereTheirMakerIsKeptApart) {
  const std::string text = R"(graph (%x: f32[1,32,6,6]) {
    %s = const splat<0.02> : f32[] %z = const splat<3> : u8[] %p = global_average_pool(%x) @"p"
    %f = flatten(%p)
    %y = quantize_linear(%f, %s, %z) @"q"
    return %y })";
  EXPECT_EQ(compiled(text).program.launches.size(), 1u);
  EXPECT_EQ(compiled(text, {{"p", "q"}}).program.launches.size(), 2u);
}

/// A first image of three colours has one zero behind them, not a vector of them.
TEST(Codes, OfAFirstImageFillAWord) {
  const std::string text = R"(graph (%x: f32[1,3,20,20]) {
    %s = const splat<0.02> : f32[] %z = const splat<3> : u8[] %c = const rand<1> : i8[32,3,3,3] %w = dequantize_linear(%c, %s)
    %e = const rand<2> : i8[3,32,1,1] %v = dequantize_linear(%e, %s) %f = const rand<3> : i8[32,3,3,3] %u = dequantize_linear(%f, %s)
    %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z) %a = conv(%d, %w) {pads = [1,1,1,1], strides = [2,2]}
    %aq = quantize_linear(%a, %s, %z) %ad = dequantize_linear(%aq, %s, %z) %b = conv(%ad, %v)
    %bq = quantize_linear(%b, %s, %z) %bd = dequantize_linear(%bq, %s, %z) %g = conv(%bd, %u)
    %y = quantize_linear(%g, %s, %z) return %y })";
  for (const char* target : {"cpu:avx2", "cpu:avx512-vnni"}) {
    const Graph graph = parse_graph(text, ops());
    CompilationOptions options;
    options.artifact.cache = false;
    const Compilation c = compile_graph(graph, parse_target(target), options);
    std::vector<int64_t> bytes;
    for (const Buffer& b : c.program.buffers)
      if (b.kind == BufferKind::intermediate && b.type.shape[1] == Dim(3)) bytes.push_back(bytes_of(b).value());
    ASSERT_EQ(bytes.size(), 2u);
    EXPECT_EQ(bytes[0], 4 * 20 * 20) << target;  // a map stores it
    EXPECT_EQ(bytes[1], c.target.lanes_f32() * 10 * 10) << target;
    for (const Launch& launch : c.program.launches)
      EXPECT_EQ(launch.schedule.skeleton == "generic", launch.region.stages[0].anchor == Anchor::map) << launch.name;
  }
  ProofCase built(text);
  for (const GroupComparison& g : built.compare()) EXPECT_TRUE(g.ok) << g.name;
}

/// Codes between a convolution and a depthwise one.
Graph pair_of_codes() {
  return parse_graph(R"(graph (%x: f32[1,16,112,112]) {
    %s = const splat<0.02> : f32[] %z = const splat<3> : u8[] %t = const splat<0.05> : f32[] %rs = const rand<5> : f32[96]
    %one = const splat<2> : f32[96] %sw = add(%rs, %one)
    %c = const rand<1> : i8[96,16,1,1] %e = const rand<2> : i8[96,1,3,3] %h = const splat<0.01> : f32[]
    %w = dequantize_linear(%c, %sw) {axis = 0} %u = dequantize_linear(%e, %h)
    %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z) %v = conv(%d, %w) %r = relu(%v)
    %vq = quantize_linear(%r, %t, %z) %vd = dequantize_linear(%vq, %t, %z)
    %k = conv(%vd, %u) {pads = [1,1,1,1], strides = [2,2], group = 96} %kr = relu(%k)
    %kq = quantize_linear(%kr, %t, %z) %kd = dequantize_linear(%kq, %t, %z)
    %g = const rand<3> : i8[24,96,1,1] %p = dequantize_linear(%g, %h) %o = conv(%kd, %p)
    %y = quantize_linear(%o, %t, %z) return %y })",
                     ops());
}

struct InSlices {
  Compilation fast, least, whole;
  explicit InSlices(const std::string& target)
      : fast(compiled(target, {})), least(compiled(target, {}, true)), whole(compiled(target, {"run-in-slices"})) {}
  static Compilation compiled(const std::string& target, std::vector<std::string> no_pass, bool least = false) {
    CompilationOptions options;
    options.artifact.cache = false;
    options.algorithms.least_memory = least;
    options.no_pass = std::move(no_pass);
    return compile_graph(pair_of_codes(), parse_target(target), options);
  }
  static int64_t arena(const Compilation& c) { return c.program.arena_bytes.value(); }
};

TEST(Codes, RunInSlicesOfHalfAMegabyte) {
  const InSlices in("cpu:avx2");
  EXPECT_EQ(of_pass(in.fast.verdicts, "run-in-slices").size(), 1u);
  EXPECT_EQ(in.fast.program.launches.size(), 6u);  // codes, two slices of each, what reads them
  EXPECT_LT(InSlices::arena(in.fast), InSlices::arena(in.whole));
  EXPECT_LT(InSlices::arena(in.least), InSlices::arena(in.fast));
}

TEST(Codes, RunInSmallSlicesWhereBytesAreMultiplied) {
  for (const char* target : {"cpu:avx512-vnni", "cpu:avx2-vnni"}) {
    const InSlices in(target);
    EXPECT_LT(InSlices::arena(in.fast), InSlices::arena(in.whole)) << target;
    EXPECT_EQ(InSlices::arena(in.fast), InSlices::arena(in.least)) << target;
  }
}

TEST(Codes, OfSlicesAreTheSame) {
  const InSlices in("host");
  const std::vector<Tensor> inputs = random_inputs(pair_of_codes(), {.seed = 3});
  const auto results = [&](const Compilation& c) {
    return run_executable(Executable::from_artifact(c.artifact), inputs).front();
  };
  EXPECT_TRUE(results(in.fast).same_bits(results(in.whole)));
  EXPECT_TRUE(results(in.least).same_bits(results(in.whole)));
}

TEST(Codes, OfTablesAreGatheredAsTheyLie) {
  const auto floats = [](const std::string& text) {
    int64_t most = 0;
    const Compilation c = compiled(text);
    for (const Buffer& b : c.program.buffers)
      if (is_float(b.type.dtype)) most = std::max(most, b.type.shape.elements().value());
    return most;
  };
  const std::string one = gathered("const splat<0.02> : f32[]", "%c, %ts, %z");
  const std::string each = gathered("const rand<3> : f32[40]", "%c, %ts");
  EXPECT_LT(floats(one), 40 * 32);
  EXPECT_LT(floats(each), 40 * 32);
  // a table that the caller gives is dequantised once, as the model says
  EXPECT_EQ(floats(gathered("const splat<0.02> : f32[]", "%p, %ts, %z", ", %p: u8[40,32]")), 40 * 32);
  // inside of a group, as embeddings stand
  const std::string normed = R"(graph (%i: i64[2,5]) {
    %c = const rand<1> : i8[40,32] %ts = const rand<3> : f32[40] %t = dequantize_linear(%c, %ts) {axis = 0}
    %p = const rand<4> : f32[5,32] %g = gather(%t, %i) {axis = 0} %a = add(%g, %p)
    %w = const rand<5> : f32[32] %b = const rand<6> : f32[32] %y = layer_norm(%a, %w, %b) return %y })";
  EXPECT_EQ(compiled(normed).program.launches.size(), 1u);
  EXPECT_LT(floats(normed), 40 * 32);
  for (const std::string& text : {one, each, normed})
    for (const auto& g : ProofCase(text).compare()) EXPECT_TRUE(g.ok) << g.name;
}

/// What DynamicQuantizeLinear and MatMulInteger are read as: the zero point of the data is computed.
std::string dynamic_text(const char* rest) {
  return fmt::format(R"(graph (%x: f32[2,9,38]) {{
    %o = const splat<0> : f32[] %n = const splat<255> : f32[]
    %h = reduce_max(%x) {{keepdims = false}} %l = reduce_min(%x) {{keepdims = false}}
    %high = max(%o, %h) %low = min(%o, %l) %range = sub(%high, %low) %s = div(%range, %n)
    %p = neg(%low) %r = div(%p, %s) %e = round(%r) %z = cast(%e) {{to = u8}}
    %q = quantize_linear(%x, %s, %z) %c = const rand<1> : i8[38,40]
    %i = matmul_integer(%q, %c, %z) %f = cast(%i) {{to = f32}} {} }})",
                     rest);
}

TEST(Codes, OfDataQuantisedOnTheWayAreSummed) {
  const std::string text = dynamic_text(
      "%k = const splat<0.01> : f32[] %t = mul(%s, %k) %m = mul(%f, %t) %b = const rand<2> : f32[40] "
      "%a = add(%m, %b) %y = relu(%a) return %y");
  for (const char* target : {"cpu:baseline", "cpu:avx2", "host"}) {
    const Compilation c = compile_graph(parse_graph(text, ops()), parse_target(target), {});
    const bool summed = std::any_of(c.program.launches.begin(), c.program.launches.end(), [](const Launch& launch) {
      return launch.schedule.skeleton == "contraction" && launch.region.stages[0].outputs[0].dtype == DType::f32;
    });
    EXPECT_TRUE(summed) << target;
    for (const auto& g : ProofCase(text, target).compare()) EXPECT_TRUE(g.ok) << target << " " << g.name;
  }
}

/// Query, key and value are one group of three products, which has no kernel of codes.
TEST(Codes, OfAttentionsProjectionsAreSummed) {
  std::string text =
      "graph (%x: f32[1,8,32]) { %s = const splat<0.02> : f32[] %z = const splat<128> : u8[] %h = const splat<0.35> : "
      "f32[]\n"
      "%q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)\n";
  int seed = 0;
  for (const std::string name : {"a", "k", "v"})
    text += fmt::format(
        "%c{0} = const rand<{1}> : i8[32,32] %b{0} = const rand<{1}> : f32[32] %w{0} = dequantize_linear(%c{0}, %s)\n"
        "%m{0} = matmul(%d, %w{0}) %l{0} = add(%m{0}, %b{0}) %g{0} = const dense<1,8,4,8> : i64[4]\n"
        "%r{0} = reshape(%l{0}, %g{0}) %t{0} = transpose(%r{0}) {{perm = [0,2,{2}]}}\n",
        name, ++seed, name == "k" ? "3,1" : "1,3");
  text += "%p = matmul(%ta, %tk) %i = mul(%p, %h) %f = softmax(%i) {axis = -1} %y = matmul(%f, %tv) return %y }";
  const Compilation c = compiled(text);
  EXPECT_EQ(precisions(c).size(), 3u);
  for (const ShapeVerdict& v : precisions(c)) EXPECT_FALSE(v.refused) << v.refused->message;
  for (const auto& g : ProofCase(text).compare()) EXPECT_TRUE(g.ok) << g.name;
}

/// One Linear whose result is cut: the module of projections is a body within the group.
TEST(Codes, OfOneProjectionForAllAreSummed) {
  const std::string text = attention_of_one_projection(
      "%s = const splat<0.02> : f32[] %z = const splat<128> : u8[] %q = quantize_linear(%x, %s, %z)\n"
      "%d = dequantize_linear(%q, %s, %z) %c = const rand<1> : i8[32,96] %b = const rand<2> : f32[96]\n"
      "%w = dequantize_linear(%c, %s) %m = matmul(%d, %w) %l = add(%m, %b)");
  const Compilation c = compiled(text);
  ASSERT_EQ(precisions(c).size(), 1u);
  EXPECT_FALSE(precisions(c)[0].refused) << precisions(c)[0].refused->message;
  for (const auto& g : ProofCase(text).compare()) EXPECT_TRUE(g.ok) << g.name;
}

/// Of AMX, whose registers have rows of 64 bytes.
TEST(Codes, LieInRowsOfMatrices) {
  const auto layouts = [](int channels) {
    const Compilation c = compile_graph(parse_graph(fmt::format(R"(graph (%x: f32[1,{0},9,9]) {{
          %s = const splat<0.02> : f32[] %z = const splat<7> : u8[] %c = const rand<1> : i8[{0},{0},3,3]
          %w = dequantize_linear(%c, %s) %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
          %v = conv(%d, %w) {{pads = [1,1,1,1]}} %y = quantize_linear(%v, %s, %z) return %y }})",
                                                                channels),
                                                    ops()),
                                        parse_target("cpu:avx512-amx"), {});
    std::string all;
    for (const Buffer& b : c.program.buffers)
      if (b.kind == BufferKind::intermediate) all += b.layout.text() + " ";
    for (const Launch& launch : c.program.launches)
      all += fmt::format("{}{} ", launch.schedule.skeleton, launch.schedule.get("matrix", 0));
    return all;
  };
  EXPECT_EQ(layouts(64), "0123/1:64 generic0 contraction1 ");
  EXPECT_EQ(layouts(48), "0123/1:16 generic0 contraction0 ");
}

TEST(Codes, ModelsOfThemAreProven) {
  Net with_signs, centred, unsigned_weights;
  with_signs.data = "i8", with_signs.zero = "-7";
  centred.weight_zero = "-1";
  unsigned_weights.weights = "u8", unsigned_weights.weight_zero = "128";
  for (const Net& net : {centred, unsigned_weights}) EXPECT_FALSE(precisions(compiled(text_of(net))).at(0).refused);
  for (const std::string& text :
       {text_of({}), text_of(with_signs), text_of(centred), text_of(unsigned_weights), std::string(kPooled)})
    for (const auto& g : ProofCase(text).compare()) EXPECT_TRUE(g.ok) << g.name;
}

}  // namespace
}  // namespace opfuse
