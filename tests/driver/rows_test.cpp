// Rows taken several at a time: each has the bits it would have alone.
#include <gtest/gtest.h>

#include "driver/compilation.hpp"
#include "driver/pipeline.hpp"
#include "interp/interpreter.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "testing/runs_here.hpp"

namespace opfuse {
namespace {

TEST(Rows, EqualRowsHaveEqualBitsWhereverTheyAre) {
  for (const char* target_name : {"cpu:avx512", "cpu:avx2", "cpu:baseline"}) {
    const TargetInfo target = parse_target(target_name);
    if (!runs_here(target)) continue;
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

// A row's mean and the row less that mean, stored where the row lay: by tiles of a row, as windows are, a tile would be
// read after it was stored. Batches of one row and batches of rows in blocks of channels.
TEST(Rows, AreStoredInPlaceWhereAllOfThemIsReducedBefore) {
  const Graph graph = parse_graph(R"(graph (%x: f32[2,34,1]) {
    %s = const dense<2,1,34> : i64[3]
    %axis = const splat<-1> : i64[1]
    %w = const rand<3> : f32[34,1]
    %t = reshape(%x, %s)
    %v = matmul(%x, %t)
    %m = reduce_mean(%v, %axis)
    %d = sub(%v, %m)
    %y = matmul(%d, %w)
    return %y
  })",
                                  ops());
  Tensor x(DType::f32, {2, 34, 1});
  for (int64_t i = 0; i < x.elements(); ++i) x.set_real(i, static_cast<double>(i * 37 % 29) / 8.0 - 1.5);
  const Tensor want = interpret(graph, {x})[0];
  for (const char* name : {"cpu:avx512", "cpu:avx2", "cpu:baseline"}) {
    const TargetInfo target = parse_target(name);
    if (!runs_here(target)) continue;
    CompilationOptions options;
    options.artifact.cache = false;
    const Executable executable = Executable::from_artifact(compile_graph(graph, target, options).artifact);
    const Tensor y = run_executable(executable, {x}, {.threads = 1})[0];
    for (int64_t i = 0; i < y.elements(); ++i) ASSERT_NEAR(y.real(i), want.real(i), 2e-5) << name << " " << i;
  }
}

}  // namespace
}  // namespace opfuse
