// Launches that differ by one size share a kernel, which reads the size; many that differ by numbers read those.
#include <fmt/format.h>

#include <functional>

#include "driver/runs_everywhere.hpp"
#include "link/distinct_specs.hpp"

namespace opfuse::test {
namespace {

/// Layers that each normalise all features so far and add 32: a dense block.
std::string dense_block(int layers, int batch = 1) {
  std::string text = fmt::format("graph (%x: f32[{},32,14,14]) {{\n", batch);
  std::string features = "x";
  for (int i = 0; i < layers; ++i) {
    const int channels = 32 * (i + 1);
    text += fmt::format(
        "%g{0} = const rand<{1}> : f32[{2},1,1]\n%v{0} = const rand<{3}> : f32[48,{2},1,1]\n"
        "%w{0} = const rand<{4}> : f32[32,48,3,3]\n%m{0} = mul(%{5}, %g{0})\n%r{0} = relu(%m{0})\n"
        "%c{0} = conv(%r{0}, %v{0})\n%a{0} = relu(%c{0})\n%n{0} = conv(%a{0}, %w{0}) {{pads = [1,1,1,1]}}\n"
        "%f{0} = concat(%{5}, %n{0}) {{axis = 1}}\n",
        i, 3 * i + 1, channels, 3 * i + 2, 3 * i + 3, features);
    features = fmt::format("f{}", i);
  }
  return text + fmt::format("%y = relu(%{})\nreturn %y\n}}\n", features);
}

struct Kernels {
  std::set<std::string> symbols;
  std::set<size_t> sizes;  ///< launches with an operand behind those of their region
  size_t maps = 0;
};

Kernels maps_of(const Program& program) {
  ArtifactOptions options;
  options.cache = false;
  const Artifact artifact = build_artifact(program, parse_target("cpu:avx512"), options);
  Kernels found;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const ArtifactLaunch& launch = artifact.launches[i];
    if (!launch.symbol.starts_with("map_")) continue;
    ++found.maps;
    found.symbols.insert(launch.symbol);
    if (launch.buffers.size() > program.launches[i].buffers.size()) found.sizes.insert(i);
  }
  return found;
}

TEST(SharedKernels, MapsOfGrowingFeaturesAreOne) {
  const Program program = expect_runs(dense_block(5));
  const Kernels found = maps_of(program);
  EXPECT_GE(found.sizes.size(), 3u) << print(program);
  EXPECT_LE(found.symbols.size() + found.sizes.size() - 1, found.maps) << print(program);
}

/// In a batch the images are further apart where there are more channels: that stride is a constant of the kernel.
TEST(SharedKernels, StridesOfABatchAreNotShared) {
  const Program program = expect_runs(dense_block(3, 2));
  EXPECT_TRUE(maps_of(program).sizes.empty());
}

TEST(SharedKernels, AKernelAloneHasItsConstants) { EXPECT_TRUE(maps_of(expect_runs(dense_block(1))).sizes.empty()); }

/// Rectifiers of inputs of their own, each with its slope; `slope` makes the number of the i-th.
std::string slopes(int count, const std::function<double(int)>& slope) {
  std::string inputs, body, results;
  for (int i = 0; i < count; ++i) {
    inputs += fmt::format("{}%x{}: f32[3,{}]", i ? ", " : "", i, 37);
    body += fmt::format("%l{0} = leaky_relu(%x{0}) {{alpha = {1}}}\n%y{0} = tanh(%l{0})\n", i, slope(i));
    results += fmt::format("{}%y{}", i ? ", " : "", i);
  }
  return fmt::format("graph ({}) {{\n{}return {}\n}}\n", inputs, body, results);
}

TEST(SharedKernels, ManyMapsThatDifferByANumberAreOne) {
  const Kernels found = maps_of(expect_runs(slopes(20, [](int i) { return 0.04 * (i + 1); })));
  EXPECT_EQ(found.symbols.size(), 1u);
  EXPECT_EQ(found.sizes.size(), 20u);
}

TEST(SharedKernels, AFewMapsHaveTheirNumbersInTheirCode) {
  const Kernels found = maps_of(expect_runs(slopes(5, [](int i) { return 0.04 * (i + 1); })));
  EXPECT_EQ(found.symbols.size(), 5u);
  EXPECT_TRUE(found.sizes.empty());
}

/// One walks 6 rows, one 2 x 3 of them: the same machine code.
TEST(SharedKernels, RowsCutInTwoDimensionsAreRows) {
  const Program program = expect_runs(
      "graph (%x: f32[6,40], %z: f32[2,3,40]) {\n%g = const rand<1> : f32[40]\n%b = const rand<2> : f32[40]\n"
      "%n = layer_norm(%x, %g, %b)\n%m = layer_norm(%z, %g, %b)\nreturn %n, %m\n}\n");
  ArtifactOptions options;
  options.cache = false;
  const Artifact artifact = build_artifact(program, parse_target("cpu:avx2"), options);
  ASSERT_EQ(artifact.launches.size(), 2u) << print(program);
  EXPECT_EQ(artifact.launches[0].symbol, artifact.launches[1].symbol) << print(program);
}

TEST(SharedKernels, EqualMapsNeedNoNumbers) {
  const Kernels found = maps_of(expect_runs(slopes(20, [](int) { return 0.25; })));
  EXPECT_EQ(found.symbols.size(), 1u);
  EXPECT_TRUE(found.sizes.empty());
}

}  // namespace
}  // namespace opfuse::test
