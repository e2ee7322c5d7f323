// Winograd convolutions against the region interpreter: tiles, edges, channels, groups, batches, expressions.
#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"
#include "cpu/winograd/winograd_cost.hpp"

namespace opfuse::test {
namespace {

const std::string kUnevenPads = R"(region
param input f32[2,32,11,13]
param constant f32[32,32,3,3]
param output f32[2,32,14,12]
stage contraction
  domain [2,32,14,12]
  reduce [32,3,3]
  read param 0 at [a0, a4, a2 + a5 + -3, a3 + a6 + -1]
  read param 1 at [a1, a4, a5, a6]
  reduction sum mul(select(in0, r0, 0), r1)
  output param 2 f32[2,32,14,12] at [a0, a1, a2, a3] = s0
)";

const std::vector<SymbolValues> kBatches = {{{"n", 1}}, {{"n", 2}}, {{"n", 3}}, {{"n", 17}}};

const std::vector<Case> kCases = {
    wished("square", conv_region({.c = 32, .h = 16, .w = 16, .o = 64})),
    wished("residual", conv_region({.c = 16, .h = 10, .w = 29, .o = 32, .residual = true})),
    wished("small_map", conv_region({.c = 48, .h = 7, .w = 7, .o = 64})),
    wished("odd_channels", conv_region({.c = 19, .h = 9, .w = 14, .o = 37})),
    wished("tiny_map", conv_region({.c = 16, .h = 2, .w = 2, .o = 16})),
    wished("smaller_than_the_filter", conv_region({.c = 16, .h = 2, .w = 9, .o = 16})),
    wished("no_padding", conv_region({.c = 16, .h = 9, .w = 20, .o = 16, .pad = 0})),
    wished("one_tile", conv_region({.c = 16, .h = 4, .w = 4, .o = 48, .pad = 0})),
    wished("wide_padding", conv_region({.c = 16, .h = 5, .w = 6, .o = 16, .pad = 5})),
    wished("uneven_padding", kUnevenPads),
    wished("one_channel_out", conv_region({.c = 16, .h = 6, .w = 6, .o = 1})),
    wished("groups", conv_region({.c = 64, .h = 8, .w = 9, .o = 128, .group = 2})),
    wished("narrow_groups", conv_region({.c = 64, .h = 8, .w = 9, .o = 64, .group = 4})),
    wished("batch", conv_region({.n = "5", .c = 32, .h = 7, .w = 7, .o = 32})),
    wished("unbound_batch", conv_region({.n = "n", .c = 16, .h = 7, .w = 9, .o = 32}), kBatches),
    wished("many_parts", conv_region({.c = 16, .h = 60, .w = 61, .o = 32})),
    wished("long_epilogue",
           conv_region({.c = 16, .h = 10, .w = 10, .o = 21, .activation = "div({0}, add(1, exp(neg({0}))))"})),
    wished("prologue", kPrologue),
};

/// The case with its weights transformed; an expectation when the algorithm does not fit.
KernelSpec winograd_spec(const Case& c, const WinogradTile& tile, const TargetInfo& target) {
  KernelSpec spec = spec_of(c, target);
  const auto found = view_winograd(spec.region, 0);
  EXPECT_TRUE(std::holds_alternative<WinogradView>(found));
  const auto& winograd = std::get<WinogradView>(found);
  const ContractionView& view = winograd.contraction;
  const Stage& stage = spec.region.stages[0];
  const auto weights = static_cast<size_t>(stage.reads[static_cast<size_t>(view.weights)].index);
  const int64_t vectors = winograd_vectors(stage, winograd, tile, target);
  EXPECT_GT(vectors, 0);
  spec.layouts[weights].layout = winograd_weights(winograd, tile, vectors, target);
  spec.layouts[weights].strides = dense_strides(spec.layouts[weights].layout, spec.region.params[weights].type.shape);
  spec.schedule = choose_schedule(spec.region, spec.layouts, target);
  return spec;
}

class Winograd : public testing::TestWithParam<std::tuple<Case, WinogradTile, TargetInfo>> {};

TEST_P(Winograd, matches_the_interpreter) {
  const auto& [test, tile, target] = GetParam();
  const KernelSpec spec = winograd_spec(test, tile, target);
  ASSERT_EQ(spec.schedule.get("winograd_h", 0), tile.h) << spec.schedule.text();
  check_spec(test, spec, target);
}
INSTANTIATE_TEST_SUITE_P(Kernels, Winograd,
                         testing::Combine(testing::ValuesIn(kCases),
                                          testing::Values(WinogradTile{2, 2}, WinogradTile{4, 4}, WinogradTile{4, 2}),
                                          testing::ValuesIn(runnable_targets())),
                         [](const auto& info) {
                           const WinogradTile& t = std::get<1>(info.param);
                           return case_name(std::get<0>(info.param), std::get<2>(info.param)) + "_f" +
                                  std::to_string(t.h) + "x" + std::to_string(t.w);
                         });

}  // namespace
}  // namespace opfuse::test
