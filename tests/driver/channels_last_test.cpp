// Images that change between channels first and last: no kernel only moves elements, values are the interpreter's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "driver/pipeline.hpp"
#include "fusion/plan.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"
#include "proof/compare.hpp"
#include "testing/runs_here.hpp"

namespace opfuse {
namespace {

/// Two ConvNeXt blocks and the step to the next stage.
Graph blocks(const std::string& n, int c, int h, int w) {
  std::string text = fmt::format(
      "graph (%x: f32[{0},{1},{2},{3}]) {{\n %dw = const rand<1> : f32[{1},1,7,7]\n %s = const rand<2> : f32[{1}]\n"
      " %w1 = const rand<3> : f32[{1},{4}]\n %b1 = const rand<4> : f32[{4}]\n %w2 = const rand<5> : f32[{4},{1}]\n"
      " %g = const rand<6> : f32[{1},1,1]\n %wd = const rand<7> : f32[{4},{1},2,2]\n",
      n, c, h, w, 2 * c);
  std::string x = "%x";
  for (int i = 0; i < 2; ++i) {
    text += fmt::format(
        " %c{0} = conv({1}, %dw, %s) {{pads=[3,3,3,3], group={2}}}\n %t{0} = transpose(%c{0}) {{perm=[0,2,3,1]}}\n"
        " %n{0} = layer_norm(%t{0}, %s, %s) {{axis=-1}}\n %m{0} = matmul(%n{0}, %w1)\n %a{0} = add(%m{0}, %b1)\n"
        " %e{0} = gelu(%a{0})\n %p{0} = matmul(%e{0}, %w2)\n %q{0} = add(%p{0}, %s)\n"
        " %u{0} = transpose(%q{0}) {{perm=[0,3,1,2]}}\n %l{0} = mul(%u{0}, %g)\n %r{0} = add(%l{0}, {1})\n",
        i, x, c);
    x = fmt::format("%r{}", i);
  }
  text += fmt::format(
      " %t = transpose({}) {{perm=[0,2,3,1]}}\n %n = layer_norm(%t, %s, %s) {{axis=-1}}\n"
      " %u = transpose(%n) {{perm=[0,3,1,2]}}\n %d = conv(%u, %wd) {{strides=[2,2]}}\n %y = relu(%d)\n return %y\n}}",
      x);
  return parse_graph(text, ops());
}

struct Case {
  std::string target, n;
  int c, h, w;
};

class ChannelsLast : public testing::TestWithParam<Case> {};

TEST_P(ChannelsLast, BlocksRunWithoutMovingElementsAndEqualTheInterpreter) {
  const auto& [target_name, n, c, h, w] = GetParam();
  const TargetInfo target = parse_target(target_name);
  Graph graph = blocks(n, c, h, w);
  prepare(graph, {}, nullptr);
  const Graph fused = apply(graph, plan_graph(graph, target, {}));
  const Program program = lower_to_program(fused, target);
  EXPECT_EQ(program.launches.size(), 2 * 4u + 2u) << print(program);
  for (const Launch& launch : program.launches) EXPECT_NE(launch.region.stages[0].anchor, Anchor::map) << launch.name;
  ArtifactOptions options;
  options.cache = false;
  const Executable executable = Executable::from_artifact(build_artifact(program, target, options));
  for (int64_t batch : n == "n" ? std::vector<int64_t>{1, 2, 5} : std::vector<int64_t>{1}) {
    const std::vector<Tensor> inputs = random_inputs(fused, {.seed = 1, .symbols = {{"n", batch}}});
    for (const GroupComparison& group : compare_groups(fused, program, executable, inputs, {}))
      EXPECT_TRUE(group.ok) << group.name << ": " << group.difference.relative() << ", padding " << group.padding_zero;
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& name : known_targets()) {
    const TargetInfo target = parse_target(name);
    if (target.is_cuda() || !runs_here(target)) continue;
    all.push_back({name, "1", 32, 14, 14});
    all.push_back({name, "2", 37, 9, 6});
    all.push_back({name, "n", 20, 8, 7});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, ChannelsLast, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name =
      fmt::format("{}_{}x{}x{}x{}", info.param.target, info.param.n, info.param.c, info.param.h, info.param.w);
  for (char& ch : name)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return name;
});

TEST(ChannelsLast, ImagesBetweenProductsLieInBlocksWhereverTheirChannelsAre) {
  const TargetInfo target = parse_target("cpu:avx512");
  Graph graph = blocks("1", 32, 14, 14);
  prepare(graph, {}, nullptr);
  const Program program = lower_to_program(apply(graph, plan_graph(graph, target, {})), target);
  int second = 0, last = 0, dense = 0;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.kind != BufferKind::intermediate) continue;
    second += buffer.layout == Layout::channels_blocked(4, 1, 16);
    last += buffer.layout == Layout::channels_blocked(4, 3, 16);
    dense += buffer.layout.is_dense();
  }
  EXPECT_EQ(last, 6) << print(program);  // of each block: convolution, norm, hidden
  EXPECT_EQ(second, 3) << print(program);
  EXPECT_EQ(dense, 0);
}

/// Only the whole has a reader with a wish, its parts only kernels that store them.
TEST(ChannelsLast, PartsOfAnImageAreStoredAsTheWhole) {
  const TargetInfo target = parse_target("cpu:avx512");
  Graph graph = parse_graph(R"(graph (%x: f32[1,32,14,14], %z: f32[1,32,14,14]) {
    %dw = const rand<1> : f32[32,1,3,3] %s = const rand<2> : f32[32] %w = const rand<3> : f32[32,64] %v = const rand<4> : f32[64,32]
    %p = const rand<5> : f32[32,32,1,1] %k = conv(%x, %p) %l = relu(%k) %m = conv(%z, %p) %n = relu(%m)
    %a = conv(%l, %dw, %s) {pads=[1,1,1,1], group=32} %b = transpose(%a) {perm=[0,2,3,1]} %c = layer_norm(%b, %s, %s) {axis=-1}
    %d = conv(%n, %dw, %s) {pads=[1,1,1,1], group=32} %e = transpose(%d) {perm=[0,2,3,1]} %f = layer_norm(%e, %s, %s) {axis=-1}
    %g = concat(%c, %f) {axis = 0} %h = matmul(%g, %w) %i = gelu(%h) %j = matmul(%i, %v) %y = transpose(%j) {perm=[0,3,1,2]}
    return %y })",
                            ops());
  prepare(graph, {}, nullptr);
  const Program program = lower_to_program(apply(graph, plan_graph(graph, target, {})), target);
  EXPECT_EQ(program.launches.size(), 2 * 3u + 2u) << print(program);
  for (const Launch& launch : program.launches) EXPECT_NE(launch.region.stages[0].anchor, Anchor::map) << launch.name;
  int blocked = 0;
  for (const Buffer& buffer : program.buffers)
    if (buffer.name == "c" || buffer.name == "f" || buffer.name == "g")
      blocked += buffer.layout == Layout::channels_blocked(4, 3, 16);
  EXPECT_EQ(blocked, 3) << print(program);
}

TEST(ChannelsLast, ProductsOfTwoActivationsKeepTheirRowsDense) {
  const TargetInfo target = parse_target("cpu:avx512");
  Graph graph = parse_graph(
      "graph (%q: f32[1,2,32,64], %k: f32[1,2,64,32]) {\n %a = relu(%q)\n %b = relu(%k)\n %s = matmul(%a, %b)\n"
      " %p = softmax(%s) {axis=-1}\n %y = matmul(%p, %a)\n return %y\n}",
      ops());
  prepare(graph, {}, nullptr);
  for (const Buffer& buffer : lower_to_program(graph, target).buffers) EXPECT_TRUE(buffer.layout.is_dense());
}

}  // namespace
}  // namespace opfuse
