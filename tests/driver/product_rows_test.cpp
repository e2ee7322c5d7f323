// A product of matrices and the reduction of its rows as one launch: where it is one, that it computes what the graph
// says on every CPU target, and where it stays two, with the numbers or the reason.
#include <fmt/format.h>

#include "driver/compilation.hpp"
#include "driver/runs_everywhere.hpp"
#include "fusion/reasons.hpp"

namespace opfuse {
namespace {

using test::expect_runs;
using ::testing::HasSubstr;

/// Numbers do not depend on this machine's caches.
TargetInfo with_l2(int64_t bytes) {
  TargetInfo target = parse_target("cpu:avx512");
  target.l2_bytes = bytes;
  target.l3_bytes = int64_t{32} << 20;
  return target;
}

const TargetInfo kTarget = with_l2(1 << 20);

/// x[rows, depth] * w[depth, columns] and what is behind it, of %p to %y.
std::string product(const std::string& rows, int depth, int columns, const std::string& behind) {
  return fmt::format(
      "graph (%x: f32[{0},{1}]) {{ %w = const rand<1> : f32[{1},{2}] %b = const rand<2> : f32[{2}]\n"
      "%k = const dense<-1> : i64[1] %p = matmul(%x, %w) @\"p\"\n {3} return %y }}",
      rows, depth, columns, behind);
}

FusionPlan plan_of(const std::string& text, const TargetInfo& target = kTarget, const PlanRequest& request = {}) {
  Graph graph = parse_graph(text, ops());
  prepare(graph, {}, nullptr);
  return plan_graph(graph, target, request);
}

const EdgeVerdict& edge_to(const FusionPlan& plan, const std::string& consumer) {
  for (const EdgeVerdict& e : plan.edges)
    if (e.consumer == consumer) return e;
  throw std::runtime_error("no edge to " + consumer);
}

/// One launch of a skeleton of both.
void expect_one(const std::string& text, const SymbolValues& symbols = {}) {
  const Program program = expect_runs(text, {}, symbols);
  ASSERT_EQ(program.launches.size(), 1u) << print(program);
  EXPECT_EQ(program.launches[0].schedule.skeleton, "product_rows") << print(program);
}

const std::string kSoftmax = "%y = softmax(%p) {axis=-1} @\"y\"";

TEST(ProductRows, SoftmaxOfRaggedRowsAndColumns) {
  for (const auto& [rows, columns] : {std::pair(33, 7), {129, 16}, {70, 33}, {200, 257}})
    expect_one(product(std::to_string(rows), 12, columns, kSoftmax));
}

/// Bands of an open number of rows, the last of them cut when it runs.
TEST(ProductRows, AnyNumberOfRows) {
  const std::string text = product("n", 20, 24, kSoftmax);
  const Graph before = parse_graph(text, ops());
  for (const TargetInfo& target : test::cpu_targets()) {
    const Program program = test::program_for(text, target);
    ASSERT_EQ(program.launches.size(), 1u) << print(program);
    ArtifactOptions options;
    options.cache = false;
    const Executable executable = Executable::from_artifact(build_artifact(program, target, options));
    for (const int64_t rows : {0, 1, 7, 31, 32, 33, 95, 200}) {
      const std::vector<Tensor> values = random_inputs(before, {.seed = 1, .symbols = {{"n", rows}}});
      const Tensor want = interpret(before, values)[0], got = run_executable(executable, values, {.threads = 2})[0];
      EXPECT_EQ(got.sizes(), want.sizes());
      EXPECT_LE(difference(got, want).relative(), 1e-5) << rows << " " << target.name;
      EXPECT_TRUE(got.same_bits(run_executable(executable, values, {.threads = 1})[0])) << rows;
    }
  }
}

TEST(ProductRows, BiasScaleAndMaskInFrontResultsAndFunctionsBehind) {
  expect_one(product(
      "64", 32, 48,
      "%s = add(%p, %b) %h = const splat<0.125> : f32[] %t = mul(%s, %h) %z = tanh(%t) %y = softmax(%z) {axis=-1}"));
  expect_one(product("64", 32, 48, "%y = reduce_max(%p, %k)"));
  expect_one(product("64", 32, 48, "%r = relu(%p) %y = reduce_sum(%r, %k) {keepdims=false}"));
  expect_one(product("64", 32, 48,
                     "%m = reduce_max(%p, %k) %d = sub(%p, %m) %e = exp(%d) %s = reduce_sum(%e, %k) %q = div(%e, %s) "
                     "%y = mul(%q, %b)"));
}

TEST(ProductRows, BatchesAndResidualOperands) {
  for (const char* batch : {"3", "n"})
    expect_one(fmt::format("graph (%x: f32[{0},40,32], %z: f32[{0},40,24]) {{ %w = const rand<1> : f32[32,24]\n"
                           "%p = matmul(%x, %w) %s = add(%p, %z) %y = softmax(%s) {{axis=-1}} return %y }}",
                           batch),
               *batch == 'n' ? SymbolValues{{"n", 3}} : SymbolValues{});
}

/// A part has more rows than a share of L2 holds: it goes band by band.
TEST(ProductRows, BandsOfAPartShareItsScratch) {
  const Program program = test::program_for(product("200", 16, 96, kSoftmax), with_l2(64 << 10));
  ASSERT_EQ(program.launches.size(), 1u) << print(program);
  const int64_t band = program.launches[0].schedule.get("band", 0);
  EXPECT_GT(band, 1);
  EXPECT_LE(band * 112 * 4, 16 << 10);
}

/// One row is one part, whose columns two threads would share.
TEST(ProductRows, AHeadOfOneRowStaysTwo) {
  const FusionPlan plan = plan_of(product("1", 1280, 1000, kSoftmax));
  const EdgeVerdict& edge = edge_to(plan, "y");
  EXPECT_EQ(edge.decline.code, "slower") << edge.decline.message;
  ASSERT_TRUE(edge.price && edge.price->joined);
  EXPECT_GT(edge.price->joined->microseconds, edge.price->apart.microseconds);
  EXPECT_THAT(find_reason(edge.decline.code)->change, HasSubstr("--fuse"));
}

/// Weights that stay in no L2 would pass over each few rows.
TEST(ProductRows, ManyColumnsStayTwo) {
  const FusionPlan plan = plan_of(product("512", 512, 32000, kSoftmax));
  EXPECT_EQ(edge_to(plan, "y").decline.code, "slower") << edge_to(plan, "y").decline.message;
}

TEST(ProductRows, ARowBeyondTheShareOfL2IsRefusedWithItsBytes) {
  const FusionPlan plan = plan_of(product("64", 8, 100000, kSoftmax));
  const EdgeVerdict& edge = edge_to(plan, "y");
  EXPECT_EQ(edge.decline.code, "not_generated");
  EXPECT_THAT(edge.decline.message, HasSubstr("400064 bytes of a part's scratch"));
}

TEST(ProductRows, ReductionsOfOtherAxesAreNoneOfIt) {
  const FusionPlan columns = plan_of(product("64", 32, 48, "%y = softmax(%p) {axis=0} @\"y\""));
  EXPECT_THAT(edge_to(columns, "y").decline.message, HasSubstr("a reduction for each column"));
  const FusionPlan two = plan_of(
      "graph (%x: f32[64,32], %w: f32[32,48]) { %p = matmul(%x, %w) %y = softmax(%p) {axis=-1} @\"y\" return %y }");
  EXPECT_THAT(edge_to(two, "y").decline.message, HasSubstr("both factors are computed"));
}

/// A vector times a matrix has columns, but no axis of rows.
TEST(ProductRows, AVectorStaysTwo) {
  const std::string text =
      "graph (%x: f32[12]) { %w = const rand<1> : f32[12,40] %p = matmul(%x, %w) %y = softmax(%p) {axis=0} @\"y\" "
      "return %y }";
  EXPECT_THAT(edge_to(plan_of(text), "y").decline.message, HasSubstr("one row alone, as a vector"));
  EXPECT_EQ(expect_runs(text).launches.size(), 2u);
}

/// A precision that is asked for is kept: kernels of 16-bit factors reduce no rows.
TEST(ProductRows, ProductsOfSixteenBitsStayAlone) {
  PlanRequest all, other;
  all.precision = {"bf16"};
  other.precision = {"bf16", "f32@p"};
  const FusionPlan two = plan_of(product("64", 64, 100, kSoftmax), kTarget, all);
  EXPECT_EQ(edge_to(two, "y").decline.code, "narrow_product") << edge_to(two, "y").decline.message;
  EXPECT_THAT(change_for(edge_to(two, "y")), HasSubstr("leave out --precision"));
  EXPECT_EQ(plan_of(product("64", 64, 100, kSoftmax), kTarget, other).candidates.at(0).epilogue.size(), 1u);
}

/// Data that do not stay in L2 are fetched while the step before is multiplied, as alone.
TEST(ProductRows, FetchesDataFromBeyondL2) {
  const auto fetches = [](const std::string& rows) {
    PlanRequest request;
    request.fuse = {{"p", "y"}};
    TargetInfo target = parse_target("cpu:avx2");
    target.l2_bytes = 1 << 20;
    Compilation c(parse_graph(product(rows, 384, 96, kSoftmax), ops()), target, {.plan = request});
    c.run_to(Milestone::lowered);
    EXPECT_EQ(c.program.launches.at(0).schedule.skeleton, "product_rows");
    const int64_t* fetch = c.program.launches.at(0).schedule.find("fetch_data");
    return fetch && *fetch == 1;
  };
  EXPECT_TRUE(fetches("3136"));
  EXPECT_FALSE(fetches("64"));
}

/// What the ledger offers does what it says: one launch, with its price.
TEST(ProductRows, IsForcedAtItsPriceAndKeptApart) {
  PlanRequest forced, apart;
  forced.fuse = {{"p", "y"}};
  apart.no_fuse = {{"p", "y"}};
  EXPECT_EQ(plan_of(product("1", 1280, 1000, kSoftmax), kTarget, forced).candidates.size(), 1u);
  const FusionPlan two = plan_of(product("64", 64, 100, kSoftmax), kTarget, apart);
  EXPECT_EQ(edge_to(two, "y").decline.code, "no_fuse");
}

}  // namespace
}  // namespace opfuse
