// Transposed convolution: one launch with its epilogue, whatever the stride, and scheduled.
#include <fmt/format.h>

#include "driver/runs_everywhere.hpp"

namespace opfuse {
namespace {

using test::expect_runs;

struct Case {
  const char* name;
  const char* input;
  const char* weights;
  const char* attributes;
  bool generic = false;
};

class ConvTransposed : public testing::TestWithParam<Case> {};

TEST_P(ConvTransposed, IsOneLaunchWithItsEpilogue) {
  const Case& c = GetParam();
  const Program program = expect_runs(fmt::format(R"(graph (%x: f32{}) {{
    %w = const rand<1> : f32{}
    %t = conv_transpose(%x, %w) {{{}}}
    %y = relu(%t)
    return %y
  }})",
                                                  c.input, c.weights, c.attributes));
  EXPECT_EQ(program.launches.size(), 1u);
  EXPECT_EQ(program.launches[0].schedule.get("generic", 0), c.generic) << print(program);
}

const Case kCases[] = {
    {"NoOverlap", "[1,16,5,6]", "[16,32,2,2]", "strides=[2,2]"},
    {"WindowsOfTwo", "[1,16,5,6]", "[16,32,4,4]", "strides=[2,2], pads=[1,1,1,1]"},
    {"PhasesWithATapLess", "[2,16,5,6]", "[16,24,3,3]", "strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]"},
    {"Asymmetric", "[1,16,7,4]", "[16,16,5,3]", "strides=[3,2], pads=[2,0,1,1]"},
    {"PhasesWithoutTaps", "[1,16,5,4]", "[16,16,2,1]", "strides=[3,2]"},
    {"OneStride", "[1,16,9,9]", "[16,16,3,3]", "pads=[1,1,1,1]"},
    {"Dilated", "[1,16,9,9]", "[16,16,3,3]", "dilations=[2,2]"},
    {"Groups", "[1,32,5,5]", "[32,16,4,4]", "group=2, strides=[2,2], pads=[1,1,1,1]"},
    {"OneDimension", "[1,32,37]", "[32,16,8]", "strides=[4]"},
    {"OneOutput", "[1,32,37]", "[32,1,16]", "strides=[8], pads=[3,2]"},
    {"OneOutputOfAnImage", "[1,16,6,5]", "[16,1,4,3]", "strides=[2,3], pads=[1,0,0,1]"},
    {"ThreeDimensions", "[1,16,3,4,5]", "[16,16,2,3,2]", "strides=[2,2,2], pads=[0,1,0,0,0,1]"},
};

INSTANTIATE_TEST_SUITE_P(Cases, ConvTransposed, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

TEST(ConvTranspose, DepthwiseIsAWindow) {
  for (const char* attributes : {"strides=[2,2], pads=[1,1,1,1]", "strides=[2,1], pads=[0,1,1,0]", "strides=[1,1]"}) {
    const Program program = expect_runs(fmt::format(R"(graph (%x: f32[1,32,9,7]) {{
      %w = const rand<1> : f32[32,1,4,4]
      %w1 = const rand<2> : f32[32,32,1,1]
      %c = conv(%x, %w1)
      %t = conv_transpose(%c, %w) {{group=32, {}}}
      %s = sigmoid(%t)
      %y = conv(%s, %w1)
      return %y
    }})",
                                                    attributes));
    EXPECT_EQ(program.launches.size(), 3u);
    for (const Launch& launch : program.launches) EXPECT_EQ(launch.schedule.get("generic", 0), 0) << print(program);
  }
}

TEST(ConvTranspose, DenseResultsAreStoredAsWholeRows) {
  const auto pixels = [](const char* x, const char* w, const char* attributes) {
    const Program program = expect_runs(fmt::format(R"(graph (%x: f32{}) {{
      %w = const rand<1> : f32{}
      %t = conv_transpose(%x, %w) {{{}}}
      %y = relu(%t)
      return %y
    }})",
                                                    x, w, attributes));
    EXPECT_EQ(program.launches.size(), 1u);
    return program.launches[0].schedule.get("pixels", 0) > 0;
  };
  EXPECT_TRUE(pixels("[1,32,16,16]", "[32,24,2,2]", "strides=[2,2]"));
  EXPECT_TRUE(pixels("[2,16,16,16]", "[16,32,3,3]", "strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]"));
  EXPECT_TRUE(pixels("[1,16,4,8,8]", "[16,16,2,2,2]", "strides=[2,2,2]"));
  EXPECT_TRUE(pixels("[1,32,21,20]", "[32,1,4,4]", "group=32, strides=[2,2], pads=[1,1,1,1]"));
  EXPECT_TRUE(pixels("[1,5,7,6]", "[5,1,16,16]", "group=5, strides=[8,8], pads=[4,4,4,4]"));
}

TEST(ConvTranspose, ResultsInBlocksKeepChannelsInTheLanes) {
  const Program program = expect_runs(R"(graph (%x: f32[1,32,16,16]) {
    %w = const rand<1> : f32[32,32,2,2]
    %w1 = const rand<2> : f32[32,32,3,3]
    %t = conv_transpose(%x, %w) {strides=[2,2]}
    %y = conv(%t, %w1)
    return %y
  })");
  EXPECT_EQ(program.launches.size(), 2u);
  EXPECT_EQ(program.launches[0].schedule.get("pixels", 0), 0) << print(program);
}

TEST(ConvTranspose, AResidualIsReadWhereTheResultIs) {
  const Program program = expect_runs(R"(graph (%x: f32[1,16,5,5], %r: f32[1,20,9,9]) {
    %w = const rand<1> : f32[16,20,3,3]
    %b = const rand<2> : f32[20]
    %t = conv_transpose(%x, %w, %b) {strides=[2,2], pads=[1,1,1,1]}
    %a = add(%t, %r)
    %y = tanh(%a)
    return %y
  })");
  EXPECT_EQ(program.launches.size(), 1u);
}

TEST(ConvTranspose, DilatedStridesOfAResultWithoutElements) {
  expect_runs(R"(graph (%x: f32[1,1,3,1,1]) {
    %w = const splat<0.5> : f32[1,1,1,3,1]
    %y = conv_transpose(%x, %w) {strides=[2,2,2], dilations=[2,1,1], pads=[0,2,0,1,1,1]}
    return %y
  })");
}

TEST(ConvTranspose, OpenExtentsComputedWeightsAndDilatedStrides) {
  const char* open = R"(graph (%x: f32[n,16,h,5]) {
    %w = const rand<1> : f32[16,20,3,3]
    %t = conv_transpose(%x, %w) {strides=[2,2], pads=[1,1,1,1], output_padding=[1,0]}
    %y = relu(%t)
    return %y
  })";
  for (const int64_t n : {1, 3}) expect_runs(open, {}, {{"n", n}, {"h", 2 * n + 1}});
  expect_runs(R"(graph (%x: f32[1,6,5,4], %w: f32[6,2,3,4]) {
    %y = conv_transpose(%x, %w) {group=2, strides=[2,3], pads=[1,0,0,1]}
    return %y
  })");
  expect_runs(R"(graph (%x: f32[1,16,5,4]) {
    %w = const rand<1> : f32[16,8,3,3]
    %y = conv_transpose(%x, %w) {strides=[2,2], dilations=[2,1]}
    return %y
  })");
}

}  // namespace
}  // namespace opfuse
