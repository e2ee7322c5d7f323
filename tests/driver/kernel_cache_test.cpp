// Kernels that calibrate are compiled briefly: a program that is kept never gets one of them.
#include "link/kernel_cache.hpp"

#include <gtest/gtest.h>

#include "base/temporary_folder.hpp"
#include "driver/compilation.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "target/target.hpp"

namespace opfuse {
namespace {

const CachedKernel kBrief{{.symbol = "brief"}, {0xC3}}, kWhole{{.symbol = "whole"}, {0xC3, 0x90}};

TEST(KernelCacheTest, ABriefKernelServesBriefRequestsAlone) {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path("kernels"), parse_target("cpu:baseline"));
  const KernelSpec spec;
  cache.store(spec, kBrief, true);
  EXPECT_FALSE(cache.load(spec));
  ASSERT_TRUE(cache.load(spec, true));
  EXPECT_EQ(cache.load(spec, true)->code.symbol, "brief");
}

TEST(KernelCacheTest, AWholeKernelServesBoth) {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path("kernels"), parse_target("cpu:baseline"));
  const KernelSpec spec;
  cache.store(spec, kBrief, true);
  cache.store(spec, kWhole);
  EXPECT_EQ(cache.load(spec)->code.symbol, "whole");
  EXPECT_EQ(cache.load(spec, true)->code.symbol, "whole");
}

/// Passes that are left out change the code, not what it computes.
TEST(KernelCacheTest, BriefCodeComputesTheSameBits) {
  const std::string model =
      "graph (%x: f32[1,24,19,19]) { %w = const rand<1> : f32[40,24,3,3] %a = conv(%x, %w) {pads=[1,1,1,1]}\n"
      "%r = relu(%a) %y = global_average_pool(%r) return %r, %y }";
  std::vector<std::vector<Tensor>> results;
  for (const bool brief : {false, true}) {
    const Graph graph = parse_graph(model, ops());
    CompilationOptions options;
    options.artifact.cache = false;
    options.artifact.brief = brief;
    const Executable executable =
        Executable::from_artifact(compile_graph(graph, parse_target("host"), options).artifact);
    results.push_back(run_executable(executable, random_inputs(graph), {.threads = 2}));
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(results[0][i].same_bits(results[1][i])) << i;
}

}  // namespace
}  // namespace opfuse
