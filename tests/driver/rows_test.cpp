// Rows taken several at a time: each has the bits it would have alone.
#include <gtest/gtest.h>

#include "driver/pipeline.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"

namespace opfuse {
namespace {

TEST(Rows, EqualRowsHaveEqualBitsWhereverTheyAre) {
  for (const char* target_name : {"cpu:avx512", "cpu:avx2", "cpu:baseline"}) {
    const TargetInfo target = parse_target(target_name);
    const std::vector<std::string> host = host_features();
    if (!std::all_of(target.features.begin(), target.features.end(),
                     [&](const std::string& f) { return std::find(host.begin(), host.end(), f) != host.end(); }))
      continue;
    Graph graph = parse_graph(
        "graph (%x: f32[29,103]) {\n %s = const rand<1> : f32[103]\n %y = layer_norm(%x, %s, %s)\n return %y\n}",
        ops());
    prepare(graph, {}, nullptr);
    ArtifactOptions options;
    options.cache = false;
    const Program program = lower_to_program(graph, target);
    const Executable executable = Executable::from_artifact(build_artifact(program, target, options));
    Tensor x(DType::f32, {29, 103});
    for (int64_t i = 0; i < x.elements(); ++i) x.set_real(i, static_cast<double>(i % 103 * 37 % 101) / 7.0 - 3.0);
    const Tensor y = run_executable(executable, {x}, {.threads = 1})[0];
    for (int64_t i = 103; i < y.elements(); ++i) ASSERT_EQ(y.real(i), y.real(i % 103)) << target_name << " " << i;
  }
}

}  // namespace
}  // namespace opfuse
