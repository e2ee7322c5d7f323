// --workspace: kernels of several stages keep within it, or run as several launches that the ledger gives the reason
// of.
#include <fmt/format.h>

#include "driver/compilation.hpp"
#include "driver/runs_everywhere.hpp"
#include "fusion/reasons.hpp"

namespace opfuse {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::string kAttention =
    "graph (%q: f32[1,2,96,24], %h: f32[1,2,24,200], %v: f32[1,2,200,40]) {\n"
    "%s = matmul(%q, %h) @\"scores\"\n %p = softmax(%s) {axis=-1} @\"weights\"\n %y = matmul(%p, %v) @\"context\"\n"
    "return %y }";
const std::string kChain =
    "graph (%x: f32[1,16,112,112]) {\n %w1 = const rand<1> : f32[96,16,1,1]\n %w2 = const rand<3> : f32[96,1,3,3]\n"
    "%a = conv(%x, %w1) @\"expand\"\n %r = relu(%a) @\"act\"\n"
    "%y = conv(%r, %w2) {group=96, pads=[1,1,1,1], strides=[2,2]} @\"depthwise\"\n return %y }";
const std::string kRows =
    "graph (%x: f32[512,32]) {\n %w = const rand<1> : f32[32,96]\n %p = matmul(%x, %w) @\"p\"\n"
    "%y = softmax(%p) {axis=-1} @\"y\" return %y }";

Compilation compiled(const std::string& text, const TargetInfo& target, std::optional<int64_t> workspace,
                     const NodePairs& fuse = {}) {
  CompilationOptions options;
  options.algorithms.workspace = workspace;
  options.plan.fuse = fuse;
  options.artifact.cache = false;
  return compile_graph(parse_graph(text, ops()), target, options);
}

const EdgeVerdict& edge_to(const Compilation& c, const std::string& consumer) {
  for (const EdgeVerdict& e : c.plan.edges)
    if (e.consumer == consumer) return e;
  throw std::runtime_error("no edge to " + consumer);
}

int64_t scratch_of(const Compilation& c) {
  int64_t most = 0;
  for (const ArtifactLaunch& launch : c.artifact.launches) most = std::max(most, launch.scratch_bytes);
  return most;
}

void expect_equal(const std::string& text, const Compilation& c) {
  const Graph graph = parse_graph(text, ops());
  const std::vector<Tensor> values = random_inputs(graph, {.seed = 1});
  const Executable executable = Executable::from_artifact(c.artifact);
  const Tensor got = run_executable(executable, values, {.threads = 2})[0];
  EXPECT_LE(difference(got, interpret(graph, values)[0]).relative(), 1e-5) << print(c.program);
}

/// Of a pattern that is one node the split is noted, of an edge the ledger has the reason.
void expect_told(const Compilation& c, const std::string& consumer) {
  if (consumer.empty()) {
    EXPECT_THAT(c.program.notes, Contains(HasSubstr("--workspace allows 0")));
    return;
  }
  const EdgeVerdict& edge = edge_to(c, consumer);
  EXPECT_EQ(edge.executed, kTwoLaunches);
  EXPECT_EQ(edge.decline.code, "workspace") << edge.decline.message;
  EXPECT_THAT(edge.decline.message, HasSubstr("--workspace allows 0"));
  EXPECT_EQ(change_for(edge), "leave out --workspace");
}

/// One launch without a bound and with one that is smaller than what it would take; two and more with none at all.
/// `fuse`: what only some targets gain by.
void expect_bounded(const std::string& text, const std::string& consumer = "", const NodePairs& fuse = {}) {
  for (TargetInfo target : test::cpu_targets()) {
    target.l2_bytes = 1 << 20;
    const int64_t whole = scratch_of(compiled(text, target, std::nullopt, fuse)), most = whole / 2;
    ASSERT_GT(whole, 0) << consumer;
    const Compilation small = compiled(text, target, most, fuse);
    EXPECT_EQ(small.artifact.launches.size(), 1u) << print(small.program);
    EXPECT_LE(scratch_of(small), most) << print(small.program);
    expect_equal(text, small);
    const Compilation none = compiled(text, target, 0);
    EXPECT_GT(none.artifact.launches.size(), 1u) << print(none.program);
    expect_equal(text, none);
    expect_told(none, consumer);
  }
}

TEST(Workspace, BlocksOfAttentionsKeysKeepWithinIt) { expect_bounded(kAttention); }

TEST(Workspace, BandsOfAChainKeepWithinIt) { expect_bounded(kChain, "depthwise"); }

TEST(Workspace, BandsOfRowsOfAProductKeepWithinIt) { expect_bounded(kRows, "y", {{"p", "y"}}); }

/// Its smallest form takes more than nothing: the reason has the bytes.
TEST(Workspace, ForcedAllTheSameItIsAnErrorWithTheBytes) {
  CompilationOptions options;
  options.algorithms.workspace = 16;
  options.plan.fuse = {{"p", "y"}};
  try {
    compile_graph(parse_graph(kRows, ops()), parse_target("cpu:avx2"), options);
    ADD_FAILURE() << "compiled";
  } catch (const Error& error) {
    EXPECT_THAT(error.diagnostic().message, HasSubstr("--workspace allows 16"));
  }
}

}  // namespace
}  // namespace opfuse
