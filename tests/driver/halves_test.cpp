// Models of 16-bit types, and products for which a plan says bf16: types between kernels, skeletons, proofs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "driver/compilation.hpp"
#include "driver/one_projection.hpp"
#include "driver/proof_case.hpp"
#include "fusion/precision.hpp"
#include "tensor/tf32.hpp"
#include "testing/runs_here.hpp"

namespace opfuse {
namespace {

constexpr const char* kF16 = R"(graph (%x: f16[1,16,9,9]) {
  %w = const rand<1> : f16[32,16,3,3] %b = const rand<2> : f16[32]
  %v = conv(%x, %w, %b) {pads = [1,1,1,1]} %y = relu(%v)
  %u = const rand<3> : f16[16,32,1,1] %z = conv(%y, %u) return %z })";

Compilation compiled(const std::string& text, CompilationOptions options = {}, const char* target = "cpu:avx2") {
  options.artifact.cache = false;
  return compile_graph(parse_graph(text, ops()), parse_target(target), options);
}

/// Element types of what lies between kernels.
std::vector<DType> between(const Compilation& c) {
  std::vector<DType> types;
  for (const Buffer& b : c.program.buffers)
    if (b.kind == BufferKind::intermediate) types.push_back(b.type.dtype);
  return types;
}

int count_of(const Compilation& c, const std::string& skeleton) {
  return static_cast<int>(std::count_if(c.program.launches.begin(), c.program.launches.end(),
                                        [&](const Launch& launch) { return launch.schedule.skeleton == skeleton; }));
}

TEST(Halves, AreComputedAndKeptInF32) {
  for (const bool fused : {true, false}) {
    CompilationOptions options;
    options.fused = fused;
    const Compilation c = compiled(kF16, options);
    EXPECT_THAT(between(c), testing::Each(DType::f32));
    EXPECT_EQ(c.fused.inputs()[0]->type.dtype, DType::f16);
    EXPECT_EQ(c.fused.outputs()[0]->type.dtype, DType::f16);
    const auto told = of_pass(c.verdicts, "widen-halves");
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].number("casts"), 2);
    EXPECT_THAT(c.shapings.front(), testing::StartsWith("f16 is computed and kept in f32: "));
  }
}

TEST(Halves, CastsToF32AndBackAreNothing) {
  const Compilation c = compiled(R"(graph (%x: f32[1,8]) { %h = cast(%x) {to = f16} %w = const rand<1> : f16[8,8]
    %m = matmul(%h, %w) %y = cast(%m) {to = f32} return %y })");
  EXPECT_EQ(c.program.launches.size(), 1u);
}

TEST(Halves, StayWhereAnUnknownOperatorReadsThem) {
  Compilation c(parse_graph(R"(graph (%x: f16[8]) {
    %y = opaque(%x) {domain = "own", op_type = "Twist"} : f16[8] return %y })",
                            ops()),
                parse_target("cpu:avx2"), {});
  c.run_to(Milestone::shaped);
  const auto told = of_pass(c.verdicts, "widen-halves");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].code(), "opaque_operand");
}

TEST(Halves, OfTheInterfaceStay) {
  const Compilation c = compiled(R"(graph (%x: f16[4], %n: f16[4]) { %k = const rand<1> : f16[4]
    %y = add(%x, %k) %z = relu(%y) return %z, %k, %n })");
  for (const Value* v : c.fused.outputs()) EXPECT_EQ(v->type.dtype, DType::f16);
}

TEST(Halves, ModelsOfThemAreProven) {
  std::string bf16 = kF16;
  for (size_t at; (at = bf16.find("f16")) != std::string::npos && bf16[at - 1] != 'b';) bf16.replace(at, 3, "BF");
  for (size_t at; (at = bf16.find("BF")) != std::string::npos;) bf16.replace(at, 2, "bf16");
  for (const std::string& text : {std::string(kF16), bf16})
    for (const auto& g : ProofCase(text).compare()) EXPECT_TRUE(g.ok) << g.name;
}

// ---- products in bf16

constexpr const char* kNet = R"(graph (%x: f32[1,16,9,9]) {
  %w = const rand<1> : f32[32,16,3,3] %b = const rand<2> : f32[32]
  %v = conv(%x, %w, %b) {pads = [1,1,1,1]} %y = relu(%v)
  %u = const rand<3> : f32[32,32,1,1] %z = conv(%y, %u) %r = relu(%z)
  %t = const rand<4> : f32[16,32,1,1] %s = conv(%r, %t) %o = add(%s, %x) return %o })";

CompilationOptions asking(std::vector<std::string> precision) {
  CompilationOptions options;
  options.plan.precision = std::move(precision);
  return options;
}

TEST(Bf16, FactorsAreStoredByTheirProducers) {
  const Compilation c = compiled(kNet, asking({"bf16"}), "cpu:avx512-bf16");
  for (const ShapeVerdict& v : of_pass(c.verdicts, "narrow-factors"))
    EXPECT_FALSE(v.refused) << v.nodes[0] << ": " << v.refused->message;
  EXPECT_EQ(of_pass(c.verdicts, "narrow-factors").size(), 3u);
  EXPECT_THAT(between(c), testing::Each(DType::bf16));
  EXPECT_EQ(count_of(c, "contraction"), 3);
  EXPECT_EQ(c.program.launches.size(), 4u);  // the caller's numbers to bf16
}

TEST(Bf16, IsAFieldOfTheGroup) {
  Compilation first(parse_graph(kNet, ops()), parse_target("cpu:avx512-bf16"), asking({"bf16", "f32@#3"}));
  first.run_to(Milestone::planned);
  int full = 0;
  for (const Candidate* c : first.plan.applied()) full += c->precision == kFullPrecision;
  EXPECT_EQ(full, 1);
  EXPECT_EQ(plan_from_json(to_json(first.plan)), first.plan);
  CompilationOptions given;
  given.given_plan = std::make_shared<const FusionPlan>(plan_from_json(to_json(first.plan)));
  Compilation again(parse_graph(kNet, ops()), parse_target("cpu:avx512-bf16"), given);
  again.run_to(Milestone::shaped);
  EXPECT_EQ(of_pass(again.verdicts, "narrow-factors").size(), 2u);
}

TEST(Bf16, StaysF32ForAReason) {
  const auto code = [](const char* text, const char* target) {
    const Compilation c = compiled(text, asking({"bf16"}), target);
    const auto told = of_pass(c.verdicts, "narrow-factors");
    return told.empty() ? std::string("nothing") : told[0].code();
  };
  EXPECT_EQ(code(kNet, "cpu:avx2"), "no_kernel");
  EXPECT_EQ(code("graph (%x: f32[4,8], %y: f32[8,4]) { %z = matmul(%x, %y) return %z }", "cpu:avx512-bf16"),
            "variable_weights");
  EXPECT_EQ(code("graph (%x: f32[4,8]) { %y = relu(%x) return %y }", "cpu:avx512-bf16"), "nothing");
}

TEST(NarrowFactors, RunOnTensorCores) {
  for (const auto& [word, type] :
       {std::pair{"f16", DType::f16}, std::pair{"bf16", DType::bf16}, std::pair{"tf32", kTf32}}) {
    const Compilation c = compiled(kNet, asking({word}), "cuda:emulated");
    for (const ShapeVerdict& v : of_pass(c.verdicts, "narrow-factors"))
      EXPECT_FALSE(v.refused) << v.nodes[0] << ": " << v.refused->message;
    EXPECT_EQ(count_of(c, "mma"), 3);
    EXPECT_THAT(between(c), testing::Each(type));
    const auto executable =
        Executable::from_artifact(build_artifact(c.program, parse_target("cuda:emulated"), {.cache = false}));
    for (const auto& g : compare_groups(c.fused, c.program, executable, random_inputs(c.fused, {.seed = 1}), {}))
      EXPECT_TRUE(g.ok) << g.name;
  }
  const Compilation tf32 = compiled(kNet, asking({"tf32"}), "cpu:avx512-amx");
  EXPECT_EQ(of_pass(tf32.verdicts, "narrow-factors").at(0).code(), "no_kernel");
}

/// Large products of sm_90a are other kernels than mma; their images lie in the narrow type alone.
TEST(NarrowFactors, RunOnTheCopyEngine) {
  constexpr const char* kWide = R"(graph (%x: f32[1,64,16,16]) {
    %w = const rand<1> : f32[64,64,3,3] %v = conv(%x, %w) {pads = [1,1,1,1]} %y = relu(%v)
    %u = const rand<2> : f32[64,64,1,1] %z = conv(%y, %u) %r = relu(%z)
    %t = const rand<3> : f32[64,64,1,1] %s = conv(%r, %t) %o = add(%s, %y) return %o })";
  const Compilation c = compiled(kWide, asking({"tf32"}), "cuda:sm_90a");
  for (const ShapeVerdict& v : of_pass(c.verdicts, "narrow-factors"))
    EXPECT_FALSE(v.refused) << v.nodes[0] << ": " << v.refused->message;
  EXPECT_EQ(count_of(c, "tma"), 3);
  EXPECT_THAT(between(c), testing::Each(kTf32));
}

/// Types of constants of four KiB and more.
std::vector<DType> weights_of(const Compilation& c) {
  std::vector<DType> types;
  for (const Buffer& b : c.program.buffers)
    if (b.kind == BufferKind::constant && b.constant.elements() >= 1024) types.push_back(b.type.dtype);
  return types;
}

void expect_proven(const Compilation& c) {
  const Executable e = Executable::from_artifact(build_artifact(c.program, c.target, {.cache = false}));
  for (const auto& g : compare_groups(c.fused, c.program, e, random_inputs(c.fused, {.seed = 1}), {}))
    EXPECT_TRUE(g.ok) << g.name;
}

TEST(NarrowWeights, AreStoredWhereCpusHaveNoProductsOfF16) {
  for (const char* target : {"host", "cpu:avx2", "cpu:baseline"}) {
    const Compilation c = compiled(kNet, asking({"f16"}), target);
    EXPECT_TRUE(of_pass(c.verdicts, "narrow-factors").empty());
    const auto told = of_pass(c.verdicts, "narrow-weights");
    ASSERT_EQ(told.size(), 2u) << target;  // the third product's weights are 2 KiB
    for (const ShapeVerdict& v : told) EXPECT_FALSE(v.refused) << v.refused->message;
    EXPECT_THAT(between(c), testing::Each(DType::f32));
    EXPECT_THAT(weights_of(c), testing::Each(DType::f16));
    EXPECT_EQ(count_of(c, "contraction"), 3);
    expect_proven(c);
  }
}

TEST(NarrowWeights, StayF32WhereF16WouldMakeThemInfinite) {
  const Compilation c = compiled(R"(graph (%x: f32[1,32]) {
    %w = const splat<70000.0> : f32[32,64] %y = matmul(%x, %w) return %y })",
                                 asking({"f16"}), "host");
  const auto told = of_pass(c.verdicts, "narrow-weights");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].code(), "out_of_range");
  EXPECT_THAT(weights_of(c), testing::Each(DType::f32));
}

/// Alone the product of one row would have lanes of pixels; as it stands, lanes are outputs.
TEST(NarrowWeights, OfAClassifierBehindItsPoolToo) {
  const Compilation c = compiled(R"(graph (%x: f32[1,320,7,7]) {
    %p = global_average_pool(%x) %f = flatten(%p) %w = const rand<1> : f32[1000,320] %b = const rand<2> : f32[1000]
    %y = gemm(%f, %w, %b) {transB = true} return %y })",
                                 asking({"f16"}), "host");
  const auto told = of_pass(c.verdicts, "narrow-weights");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_FALSE(told[0].refused) << told[0].refused->message;
  EXPECT_EQ(count_of(c, "contraction"), 1);
  expect_proven(c);
}

TEST(NarrowWeights, LoseNothingForTheLeastMemory) {
  CompilationOptions options;
  options.algorithms.least_memory = true;
  const Compilation of_halves = compiled(kF16, options), of_floats = compiled(kNet, options);
  EXPECT_THAT(weights_of(of_halves), testing::Each(DType::f16));
  for (const auto& choice : of_halves.program.algorithms) EXPECT_EQ(choice.name, "direct");
  EXPECT_EQ(of_pass(of_floats.verdicts, "narrow-weights").at(0).code(), "rounds");
  EXPECT_THAT(weights_of(of_floats), testing::Each(DType::f32));
  const Compilation table = compiled(R"(graph (%i: i64[1,5]) {
    %t = const rand<1> : f16[100,32] %e = gather(%t, %i) %y = relu(%e) return %y })",
                                     options);
  EXPECT_THAT(weights_of(table), testing::ElementsAre(DType::f16));
  for (const Compilation* c : {&of_halves, &of_floats, &table}) expect_proven(*c);
}

/// The first layers of a MobileNet, whose maps are much larger than their weights.
constexpr const char* kMobile = R"(graph (%x: f16[1,3,32,32]) {
  %a = const rand<1> : f16[32,3,3,3] %b = const rand<2> : f16[32,1,3,3] %c = const rand<3> : f16[16,32,1,1]
  %d = const rand<4> : f16[64,16,1,1] %s = conv(%x, %a) {pads = [1,1,1,1], strides = [2,2]} %r = relu(%s)
  %t = conv(%r, %b) {pads = [1,1,1,1], group = 32} %u = relu(%t) %p = conv(%u, %c) %e = conv(%p, %d)
  %f = relu(%e) %y = global_average_pool(%f) return %y })";

TEST(NarrowMaps, ThatHoldMostMemoryLieInF16) {
  CompilationOptions options;
  const Compilation wide = compiled(kMobile, options, "host");
  options.algorithms.least_memory = true;
  const Compilation least = compiled(kMobile, options, "host");
  const auto told = of_pass(least.verdicts, "narrow-maps");
  ASSERT_GE(told.size(), 2u);
  EXPECT_EQ(told[0].subject, "f16");
  EXPECT_TRUE(of_pass(wide.verdicts, "narrow-maps").empty());
  EXPECT_THAT(between(least), testing::Contains(DType::f16));
  EXPECT_LE(4 * least.program.arena_bytes.value(), 3 * wide.program.arena_bytes.value());
  for (const char* kind : {"contraction", "window"}) EXPECT_EQ(count_of(least, kind), count_of(wide, kind));
  for (const Buffer& b : least.program.buffers) {
    const bool map = b.type.dtype == DType::f16 && b.kind == BufferKind::intermediate;
    EXPECT_FALSE(map && b.layout.is_dense());
  }
  expect_proven(least);
  options.no_pass = {"narrow-maps"};
  EXPECT_THAT(between(compiled(kMobile, options, "host")), testing::Each(DType::f32));
}

/// As `opfuse quantize --to f16` writes files: inputs and outputs stay f32, with casts.
TEST(NarrowMaps, LieInF16BetweenCastsToo) {
  std::string text = kMobile;
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("(%x: f16[1,3,32,32]) {", "(%i: f32[1,3,32,32]) { %x = cast(%i) {to = f16}");
  replace("return %y", "%o = cast(%y) {to = f32} return %o");
  CompilationOptions options;
  options.algorithms.least_memory = true;
  EXPECT_THAT(between(compiled(text, options, "host")), testing::Contains(DType::f16));
}

/// Nothing says that numbers of f32 may be rounded, and maps that are small beside their weights are not worth it.
TEST(NarrowMaps, StayF32OfFloatsAndBesideLargeWeights) {
  CompilationOptions options;
  options.algorithms.least_memory = true;
  std::string floats = kMobile;
  for (size_t at; (at = floats.find("f16")) != std::string::npos;) floats.replace(at, 3, "f32");
  EXPECT_TRUE(of_pass(compiled(floats, options).verdicts, "narrow-maps").empty());
  const char* const kLarge = R"(graph (%x: f16[1,64,4,4]) { %w = const rand<1> : f16[64,64,3,3]
    %v = conv(%x, %w) {pads = [1,1,1,1]} %y = relu(%v) %z = conv(%y, %w) {pads = [1,1,1,1]} return %z })";
  const auto large = of_pass(compiled(kLarge, options).verdicts, "narrow-maps");
  ASSERT_EQ(large.size(), 1u);
  EXPECT_EQ(large[0].code(), "no_gain");
  options.plan.precision = {"f16"};
  EXPECT_FALSE(of_pass(compiled(floats, options).verdicts, "narrow-maps").empty());
}

/// Factors of channels multiply weights where those are f32; else the map is multiplied by itself. Outputs fill no
/// vector.
TEST(Halves, WithTheLeastMemoryLeaveFactorsToTheMap) {
  CompilationOptions options;
  options.algorithms.least_memory = true;
  const Compilation c = compiled(R"(graph (%x: f16[1,86,6,6], %s: f16[1,86,1,1]) {
    %w = const rand<1> : f16[12,86,1,1] %m = mul(%x, %s) %c = conv(%m, %w) return %c })",
                                 options, "cpu:avx512");
  const auto pairs = of_pass(c.verdicts, "join-channel-factors");
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].code(), "no_kernel");
  if (runs_here(c.target)) expect_proven(c);
}

/// The bias stays behind the activation that the model has it behind, at any precision; each graph's other order would
/// give other numbers.
TEST(Precisions, ABiasBehindAnActivationStaysThere) {
  const char* const kGraphs[] = {
      "%c = conv(%x, %w) %r = relu(%c) %y = add(%r, %b) return %y }",
      "%c = conv(%x, %w) %r = relu(%c) %a = add(%b, %r) %y = relu(%a) return %y }",
      "%c = conv(%x, %w, %d) %r = relu(%c) %y = add(%r, %b) return %y }",
      "%c = conv(%x, %w) {pads = [1,1,1,1]} %r = relu(%c) %y = add(%r, %b) return %y }",
      "%c = conv(%x, %w) %r = relu(%c) %a = add(%r, %b) %z = conv(%a, %u) %y = relu(%z) return %y }"};
  for (const char* rest : kGraphs)
    for (const char* precision : {"f32", "bf16", "f16"}) {
      const Graph graph = parse_graph(
          std::string(
              "graph (%x: f32[1,32,6,6]) { %w = const rand<1> : f32[32,32,1,1] %u = const rand<2> : f32[32,32,1,1] "
              "%d = const rand<4> : f32[32] %b = const splat<-0.75> : f32[32,1,1] ") +
              rest,
          ops());
      const std::vector<Tensor> inputs = random_inputs(graph, {.seed = 3});
      const Tensor want = interpret(graph, inputs).front();
      CompilationOptions options = asking({precision});
      options.artifact.cache = false;
      const Compilation c = compile_graph(graph, parse_target("host"), options);
      const Tensor got = run_executable(Executable::from_artifact(c.artifact), inputs).front();
      EXPECT_LT(difference(got, want).relative(), 0.02) << precision << ": " << rest;
    }
}

TEST(Bf16, TellsWhatABiasWouldLose) {
  const Compilation c = compiled(
      "graph (%x: f32[1,32,9,9]) { %w = const rand<1> : f32[32,32,1,1] %b = const rand<2> : f32[32] %h = const "
      "splat<0.5> : "
      "f32[32] %y = conv(%x, %w, %b) %r = relu(%y) %z = conv(%r, %w, %h) %s = relu(%z) return %s }",
      asking({"bf16"}), "cpu:avx512-bf16");
  const auto told = of_pass(c.verdicts, "narrow-factors");
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].number("bias_channels"), 32);
  EXPECT_GT(told[0].number("bias_lossy"), 16);
  EXPECT_GT(told[0].number("bias_ulps"), 1 << 10);
  EXPECT_LE(told[0].number("bias_ulps"), 1 << 15);  // half of what bf16 leaves out
  EXPECT_EQ(told[1].number("bias_lossy"), 0);       // a half is a number of it
}

/// Of AMX: rows of 32 numbers; what is stored in f32 too, for a residual, lies in blocks of a vector there.
TEST(Bf16, FactorsLieInRowsOfMatrices) {
  const Compilation c = compiled(kNet, asking({"bf16"}), "cpu:avx512-amx");
  EXPECT_EQ(count_of(c, "contraction"), 3);
  int rows = 0;
  for (const Buffer& b : c.program.buffers)
    rows += b.type.dtype == DType::bf16 && b.layout == Layout::channels_blocked(4, 1, 32);
  EXPECT_EQ(rows, 2);
}

/// A stem, its pool, and what reads it.
constexpr const char* kStem = R"(graph (%x: f32[1,3,35,35]) {
  %w = const rand<1> : f32[32,3,7,7] %b = const rand<2> : f32[32] %u = const rand<3> : f32[32,32,1,1]
  %c = conv(%x, %w, %b) {pads = [3,3,3,3], strides = [2,2]} %r = relu(%c)
  %p = max_pool(%r) {kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]} %y = conv(%p, %u) return %y })";

TEST(Bf16, PoolsBehindAProductPoolRoundedNumbers) {
  const Compilation joined = compiled(kStem, asking({"f32"}), "cpu:avx512-amx");
  EXPECT_EQ(joined.program.launches.size(), 2u);  // the stem with its pool, the other product
  const Compilation c = compiled(kStem, asking({"bf16"}), "cpu:avx512-amx");
  EXPECT_THAT(between(c), testing::Each(DType::bf16));
  EXPECT_EQ(c.program.launches.size(), 4u);  // the caller's numbers to bf16, the product, the pool, the other product
  EXPECT_EQ(count_of(c, "contraction"), 2);
  for (const Launch& launch : c.program.launches)
    EXPECT_EQ(launch.schedule.get("matrix", 0), launch.schedule.skeleton == "contraction");
  // where the product stays f32, its pool stays with it
  const Compilation refused = compiled(kStem, asking({"bf16"}), "cpu:avx2");
  EXPECT_EQ(refused.program.launches.size(), 2u);
  if (runs_here(c.target)) expect_proven(c);
}

/// Two blocks with residuals; the last result is the caller's.
constexpr const char* kBlocks = R"(graph (%x: f32[1,32,9,9]) {
  %w = const rand<1> : f32[32,32,3,3] %u = const rand<2> : f32[32,32,3,3] %v = const rand<3> : f32[32,32,1,1]
  %p = conv(%x, %v) %d = conv(%p, %v) %e = relu(%d) %a = conv(%e, %w) {pads = [1,1,1,1]} %r = add(%a, %p)
  %b = relu(%r) %f = conv(%b, %v) %g = relu(%f) %c = conv(%g, %u) {pads = [1,1,1,1]} %s = add(%c, %b) %y = relu(%s)
  return %y })";

TEST(Bf16, ResidualStreamsOfImagesAreStoredOnce) {
  CompilationOptions options = asking({"bf16"});
  const Compilation c = compiled(kBlocks, options, "cpu:avx512-amx");
  ASSERT_EQ(of_pass(c.verdicts, "narrow-streams").size(), 1u);
  EXPECT_EQ(of_pass(c.verdicts, "narrow-streams")[0].number("streams"), 2);
  EXPECT_THAT(between(c), testing::Each(DType::bf16));
  EXPECT_EQ(c.program.launches.size(), 6u);  // the caller's numbers to bf16, five products
  options.no_pass = {"narrow-streams"};
  EXPECT_THAT(between(compiled(kBlocks, options, "cpu:avx512-amx")), testing::Contains(DType::f32));
  options = asking({"bf16", "f32@#10"});  // the group of the last product reads its residual in f32
  EXPECT_THAT(between(compiled(kBlocks, options, "cpu:avx512-amx")), testing::Contains(DType::f32));
  if (runs_here(c.target)) expect_proven(c);
}

/// What slices put together is f32, and a product of bf16 behind it would need a launch that only converts.
TEST(Bf16, PairsInFrontOfAProductAreNotSliced) {
  TargetInfo target = parse_target("cpu:avx512-amx");
  target.l1_bytes = 48 << 10, target.l2_bytes = 2 << 20;  // whatever this machine has
  const auto sliced = [&](const std::string& precision) {
    Compilation c(parse_graph(R"(graph (%x: f32[1,24,56,56]) {
      %w = const rand<1> : f32[144,24,1,1] %d = const rand<2> : f32[144,1,3,3] %u = const rand<3> : f32[24,144,1,1]
      %a = conv(%x, %w) %b = relu(%a) %c = conv(%b, %d) {pads = [1,1,1,1], group = 144} %e = relu(%c) %f = conv(%e, %u)
      %y = add(%f, %x) return %y })",
                              ops()),
                  target, asking({precision}));
    c.run_to(Milestone::shaped);
    return of_pass(c.verdicts, "run-in-slices").size();
  };
  EXPECT_EQ(sliced("f32"), 1u);
  EXPECT_EQ(sliced("bf16"), 0u);
}

/// The convolution in front of a depthwise one multiplies in bf16 in their one launch too.
TEST(Bf16, OfAChain) {
  TargetInfo target = parse_target("cpu:avx512-bf16");
  target.l1_bytes = 48 << 10, target.l2_bytes = 1 << 20;  // whatever this machine has
  CompilationOptions options = asking({"bf16"});
  options.artifact.cache = false;
  const Compilation c = compile_graph(parse_graph(R"(graph (%x: f32[1,16,112,112]) {
      %w = const rand<1> : f32[96,16,1,1] %d = const rand<2> : f32[96,1,3,3] %u = const rand<3> : f32[24,96,1,1]
      %a = conv(%x, %w) %b = relu(%a) %c = conv(%b, %d) {pads = [1,1,1,1], group = 96, strides = [2,2]} %e = relu(%c)
      %y = conv(%e, %u) return %y })",
                                                  ops()),
                                      target, options);
  EXPECT_EQ(count_of(c, "chain"), 1);
  const auto told = of_pass(c.verdicts, "narrow-factors");
  ASSERT_EQ(told.size(), 2u);
  for (const ShapeVerdict& verdict : told) EXPECT_EQ(verdict.code(), "done") << verdict.refused->message;
  EXPECT_THAT(between(c), testing::Each(DType::bf16));
  if (runs_here(target)) expect_proven(c);
}

/// A convolution and a window behind it take bf16 images in blocks alone: what else keeps them dense, they are copied.
TEST(Bf16, OfAChainWhoseDataStayDense) {
  const auto chain = [](const char* before, const char* results) {
    return fmt::format(
        R"(graph (%x: f32[1,16,112,112]) {{ %w = const rand<1> : f32[96,16,1,1] %d = const rand<2> : f32[96,1,3,3]
      {} %a = conv(%q, %w) %b = relu(%a) %c = conv(%b, %d) {{pads = [1,1,1,1], group = 96, strides = [2,2]}} return {} }})",
        before, results);
  };
  for (const std::string& text :
       {chain("%q = relu(%x)", "%c, %q"), chain("%q = relu(%x) %h = sigmoid(%q)", "%c, %h"),
        chain("%u = const rand<3> : f32[16,16,3,3] %q = conv(%x, %u) {pads = [1,1,1,1]}", "%c, %q"),
        chain("%m = const rand<3> : f32[112,112] %q = matmul(%x, %m)", "%c")}) {
    const Compilation c = compiled(text, asking({"bf16"}), "cpu:avx512-bf16");
    EXPECT_EQ(count_of(c, "chain"), 1) << text;
    if (runs_here(c.target)) expect_proven(c);
  }
}

/// A word about the depthwise convolution says nothing of the one in front of it, and is answered.
TEST(Bf16, OfOneConvolutionOfAChain) {
  const auto told = [](std::vector<std::string> words) {
    const Compilation c = compiled(R"(graph (%x: f32[1,16,112,112]) {
      %w = const rand<1> : f32[96,16,1,1] %d = const rand<2> : f32[96,1,3,3] %a = conv(%x, %w) @"first" %b = relu(%a)
      %y = conv(%b, %d) {pads = [1,1,1,1], group = 96, strides = [2,2]} @"depthwise" return %y })",
                                   asking(std::move(words)), "cpu:avx512-bf16");
    EXPECT_EQ(count_of(c, "chain"), 1);
    const auto verdicts = of_pass(c.verdicts, "narrow-factors");
    return verdicts.size() == 1 ? verdicts[0].code() : fmt::format("{} verdicts", verdicts.size());
  };
  EXPECT_EQ(told({"bf16"}), "done");
  EXPECT_EQ(told({"bf16@first"}), "done");
  EXPECT_EQ(told({"bf16@depthwise"}), "no_kernel");
  EXPECT_EQ(told({"bf16", "f32@first"}), "no_kernel");
}

/// One Linear whose result is cut into queries, keys and values: the module of projections is a body within the group.
TEST(Bf16, OfOneProjectionForAll) {
  const std::string text = attention_of_one_projection(
      "%w = const rand<1> : f32[32,96] %b = const rand<2> : f32[96] %m = matmul(%x, %w) %l = add(%m, %b)");
  const Compilation c = compiled(text, asking({"bf16"}), "cpu:avx512-amx");
  const auto told = of_pass(c.verdicts, "narrow-factors");
  ASSERT_EQ(told.size(), 2u);  // the projection, the attention
  EXPECT_EQ(told[0].code(), "done") << told[0].refused->message;
  EXPECT_EQ(told[1].code(), "several_products");
}

/// Rows of 24 numbers are in no whole steps of a register's row, and vdpbf16ps is slower than f32 there.
TEST(Bf16, StaysF32WhereThatIsFaster) {
  const auto code = [](int rows, int depth) {
    const Compilation c = compiled(fmt::format("graph (%x: f32[{0},{1}]) {{ %w = const rand<1> : f32[{1},32] %y = "
                                               "matmul(%x, %w) %r = relu(%y) return %r }}",
                                               rows, depth),
                                   asking({"bf16"}), "cpu:avx512-amx");
    return of_pass(c.verdicts, "narrow-factors").at(0).code();
  };
  EXPECT_EQ(code(20, 24), "no_gain");
  EXPECT_EQ(code(20, 32), "done");
  EXPECT_EQ(code(2, 24), "done");  // half of the bytes to read
  const Compilation patches = compiled(
      "graph (%x: f32[1,3,64,64]) { %w = const rand<1> : f32[64,3,16,16] %y = conv(%x, %w) {strides = [16,16]} return "
      "%y }",
      asking({"bf16"}), "cpu:avx512-amx");
  EXPECT_EQ(of_pass(patches.verdicts, "narrow-factors").at(0).code(), "no_gain");  // 16 taps do not fit a row together
}

TEST(Bf16, RefusesOtherWordsAndNodes) {
  const auto refused = [](const char* rule) {
    try {
      compiled(kNet, asking({rule}));
    } catch (const Error& error) {
      return error.diagnostic().name;
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused("fp16"), "bad_option");
  EXPECT_EQ(refused("int8"), "bad_option");
  EXPECT_EQ(refused("bf16@nowhere"), "unknown_name");
  EXPECT_EQ(refused("f32@#3"), "accepted");
}

}  // namespace
}  // namespace opfuse
