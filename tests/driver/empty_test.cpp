// An extent of none, as a batch of 0 that --dim fixes: nothing is computed, and nothing divides by it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "driver/pipeline.hpp"
#include "driver/shape_for_target.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"

namespace opfuse {
namespace {

struct Case {
  const char* name;
  const char* text;
};

class EmptyBatch : public testing::TestWithParam<Case> {};

TEST_P(EmptyBatch, CompilesAndRuns) {
  const TargetInfo target = parse_target("cpu:baseline");
  Graph graph = parse_graph(GetParam().text, ops());
  graph.bind_dimensions({{"n", 0}});
  prepare(graph, {}, nullptr);
  Graph fused = apply(graph, plan_graph(graph, target, {}));
  shape_for_target(fused, target);
  ArtifactOptions options;
  options.cache = false;
  const Executable executable =
      Executable::from_artifact(build_artifact(lower_to_program(fused, target), target, options));
  char folder[] = "/tmp/opfuse_empty_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/m.opf";
  executable.save(path);
  for (const Executable& each : {executable, Executable::load(path)}) {
    const std::vector<Tensor> outputs = run_executable(each, random_inputs(fused, {.seed = 1}));
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].dim(0), 0);
  }
  std::filesystem::remove_all(folder);
}

const Case kCases[] = {
    {"StemAndPooling", R"(graph (%x: f32[n,3,16,16]) {
      %w = const rand<1> : f32[16,3,3,3]
      %c = conv(%x, %w) {pads=[1,1,1,1]}
      %r = relu(%c)
      %y = max_pool(%r) {kernel_shape=[2,2], strides=[2,2]}
      return %y
    })"},
    {"Depthwise", R"(graph (%x: f32[n,16,8,8]) {
      %w = const rand<1> : f32[16,1,3,3]
      %y = conv(%x, %w) {group=16, pads=[1,1,1,1]}
      return %y
    })"},
    {"PartsOfAResult", R"(graph (%x: f32[n,1,4], %z: f32[n,1,4]) {
      %a = relu(%x)
      %b = sigmoid(%z)
      %y = concat(%a, %b) {axis = 1}
      return %y
    })"},
    {"PartsOfAnInnerValue", R"(graph (%x: f32[n,16,8,8], %z: f32[n,16,8,8]) {
      %w = const rand<1> : f32[8,32,1,1]
      %a = relu(%x)
      %v = const rand<2> : f32[16,16,1,1]
      %b = conv(%z, %v)
      %c = concat(%a, %b) {axis = 1}
      %y = conv(%c, %w)
      return %y
    })"},
    {"Linear", R"(graph (%x: f32[n,24]) {
      %w = const rand<1> : f32[24,40]
      %m = matmul(%x, %w)
      %y = softmax(%m)
      return %y
    })"},
};

INSTANTIATE_TEST_SUITE_P(Cases, EmptyBatch, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace opfuse
