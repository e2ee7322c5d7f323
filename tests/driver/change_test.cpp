// What the ledger says would change an edge does change it; where nothing would, forcing the group fails.
// bench/hints.py draws many more from models.
#include <gtest/gtest.h>

#include "driver/compilation.hpp"
#include "fusion/reasons.hpp"
#include "opfuse/error.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

Compilation lowered(const std::string& text, const PlanRequest& request = {}) {
  CompilationOptions options;
  options.plan = request;
  Compilation c(parse_graph(text, ops()), parse_target("cpu:avx512"), options);
  c.run_to(Milestone::lowered);
  return c;
}

const std::vector<std::string> kGraphs = {
    "graph (%x: f32[1,64,32,32]) {\n %w = const rand<1> : f32[256,64,1,1]\n %v = const rand<2> : f32[256,1,3,3]\n"
    "%a = tanh(%x) @\"act\"\n %b = conv(%a, %w) @\"expand\"\n %c = transpose(%b) {perm=[0,2,3,1]} @\"turn\"\n"
    "%d = conv(%b, %v) {group=256, pads=[1,1,1,1]} @\"depthwise\"\n return %c, %d }",
    "graph (%x: f32[64,256]) {\n %k = const dense<-1> : i64[1]\n %m = reduce_max(%x, %k) @\"max\"\n"
    "%d = sub(%x, %m) @\"sub\"\n %e = tanh(%d) @\"tanh\"\n %s = reduce_sum(%e, %k) @\"sum\"\n %y = div(%e, %s) "
    "@\"div\"\n"
    "return %y }",
    "graph (%x: f32[1,16,32,32], %z: f32[1,16,32,32]) {\n %a = relu(%x) @\"a\"\n %b = sigmoid(%z) @\"b\"\n"
    "%c = concat(%a, %b) {axis=1} @\"cat\"\n %y = tanh(%c) @\"y\"\n return %y }",
    "graph (%x: f32[64,256], %i: i64[32]) {\n %w = const rand<1> : f32[256,256]\n %a = matmul(%x, %w) @\"first\"\n"
    "%g = gather(%a, %i) {axis=0} @\"rows\"\n %y = matmul(%g, %w) @\"second\"\n return %y }",
    // two convolutions that could be a chain
    "graph (%x: f32[1,64,14,14]) {\n %w = const rand<1> : f32[384,64,1,1]\n %v = const rand<2> : f32[384,1,3,3]\n"
    "%a = conv(%x, %w) @\"widen\"\n %s = sigmoid(%a) @\"gate\"\n %m = mul(%a, %s) @\"silu\"\n"
    "%y = conv(%m, %v) {group=384, pads=[1,1,1,1]} @\"taps\"\n return %y }",
    // a view in front of a product, and of a resize
    "graph (%x: f32[1,16,16,16]) {\n %s = const dense<1,16,256> : i64[3]\n %w = const rand<1> : f32[256,64]\n"
    "%a = relu(%x) @\"a\"\n %r = reshape(%a, %s) @\"flat\"\n %y = matmul(%r, %w) @\"product\"\n"
    "%z = softmax(%r) {axis=-1} @\"rows\"\n return %y, %z }",
};

TEST(Changes, FlipWhatTheySayAndNothingFlipsTheRest) {
  size_t flips = 0, fast = 0;
  for (const std::string& text : kGraphs) {
    const Compilation c = lowered(text);
    for (const EdgeVerdict& edge : c.plan.edges) {
      if (edge.executed != kTwoLaunches && edge.executed != kCopy) continue;
      const std::string what = edge.producer + " -> " + edge.consumer + ": " + edge.decline.code;
      const std::string change = change_for(edge);
      const PlanRequest forced{.fuse = {{edge.producer, edge.consumer}}};
      if (change == kNoChangeFlips) {
        EXPECT_THROW(lowered(text, forced), Error) << what;
        ++fast;
        continue;
      }
      ASSERT_TRUE(change.starts_with("--fuse ")) << what << ", " << change;
      for (const EdgeVerdict& after : lowered(text, forced).plan.edges)
        if (after.producer == edge.producer && after.consumer == edge.consumer) {
          EXPECT_TRUE(after.executed == kOneLaunch || after.executed == kView) << what << ", " << after.executed;
        }
      ++flips;
    }
  }
  EXPECT_GE(flips, 3u);
  EXPECT_GE(fast, 1u);
}

TEST(Changes, OfTwoConvolutionsThatAChainCouldComputeHaveAPrice) {
  const Compilation c = lowered(kGraphs[4]);
  size_t seen = 0;
  for (const EdgeVerdict& edge : c.plan.edges) {
    if (edge.consumer != "taps") continue;
    EXPECT_EQ(edge.executed, kTwoLaunches);
    EXPECT_EQ(edge.decline.code, "two_anchors");
    EXPECT_TRUE(edge.price && edge.price->joined);
    EXPECT_EQ(change_for(edge), "--fuse gate taps");
    ++seen;
  }
  EXPECT_EQ(seen, 1u);
}

}  // namespace
}  // namespace opfuse
