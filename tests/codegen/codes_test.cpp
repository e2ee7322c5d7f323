// Sums of codes against the interpreter, in every bit: requantised results, on all targets this machine runs.
#include "cpu/contraction/codes.hpp"

#include <cstdlib>
#include <random>

#include "codegen/codes_cases.hpp"
#include "codegen/hot_loops.hpp"
#include "cpu/winograd/winograd_cost.hpp"
#include "tensor/winograd_codes.hpp"
#include "testing/runs_here.hpp"

namespace opfuse::test {
namespace {

/// More of them: OPFUSE_DRAWN_CODES=500 build/release/tests/test_codegen --gtest_filter='Drawn/CodesTest*'
int drawn_count() {
  const char* given = std::getenv("OPFUSE_DRAWN_CODES");
  return given ? std::atoi(given) : 24;
}

/// The largest code of windows that hang over the data.
const char* const kLargest =
    "region\nparam input u8[1,40,9,9]\nparam output u8[1,40,5,5]\nstage window\n  domain [1,40,5,5]\n  reduce [3,3]\n"
    "  read param 0 at [a0, a1, 2*a2 + a4 + -1, 2*a3 + a5 + -1]\n  reduction max select(in0, r0:u8, 0:u8)\n"
    "  output param 1 u8[1,40,5,5] at [a0, a1, a2, a3] = s0:u8\n";

const std::vector<Case> kCases = {
    wished("largest", kLargest),
    rows("rows", 40, 48, 128, "u8", true),
    rows("rows_ragged", 19, 37, 64, "u8", false),
    rows("rows_of_signs", 33, 64, 64, "i8", true),
    rows("rows_of_48", 20, 32, 48, "u8", false),
    rows("rows_of_37", 20, 32, 37, "u8", true),
    rows("rows_of_3", 5, 16, 3, "i8", true),
    rows("rows_of_gelu", 37, 64, 128, "u8", false, true),
    rows("rows_of_gelu_ragged", 7, 19, 24, "i8", false, true),
    rows("rows_of_150", 9, 40, 150, "i8", false),
    codes("one_by_one", {.conv = conv(64, 64, 6, 1)}),
    codes("few_channels", {.conv = conv(3, 16, 9, 3, 1, 2)}),
    codes("odd_channels", {.conv = conv(37, 51, 6, 1), .zero = 255, .unit = 256}),
    codes("padded", {.conv = conv(20, 36, 6, 3, 1), .unit = 2048}),
    codes("strided", {.conv = conv(20, 24, 11, 3, 1, 2), .zero = 128, .unit = 1024}),
    codes("dilated", {.conv = conv(16, 32, 8, 3, 2, 1, 2), .unit = 2048}),
    codes("groups", {.conv = conv(64, 64, 3, 3, 1, 1, 1, 2), .unit = 2048}),
    codes("saturates", {.conv = conv(48, 32, 4, 3, 1), .unit = 64, .extreme = true}),
    codes("padding_of_128", {.conv = conv(20, 36, 7, 3, 1), .padding = 128, .zero = 255, .unit = 2048}),
    codes("padding_of_255", {.conv = conv(3, 32, 9, 7, 3, 2), .padding = 255, .unit = 1024}),
    codes("near_the_end_of_i32",
          {.conv = conv(40, 33, 5, 1), .zero = 128, .unit = 1 << 24, .extreme = true, .full = true}),
    codes("near_the_end_with_taps",
          {.conv = conv(20, 16, 6, 3, 1), .padding = 255, .unit = 1 << 24, .extreme = true, .full = true}),
    codes("depthwise", {.conv = conv(40, 40, 9, 3, 1, 1, 1, 40), .unit = 256}),
    codes("depthwise_in_long_rows", {.conv = conv(16, 16, 56, 3, 1, 1, 1, 16), .zero = 3, .unit = 256}),
    codes("depthwise_strided_in_long_rows", {.conv = conv(24, 24, 57, 3, 1, 2, 1, 24), .zero = 128, .unit = 256}),
    codes("depthwise_of_5", {.conv = conv(24, 24, 21, 5, 2, 1, 1, 24), .unit = 512}),
    codes("depthwise_of_7", {.conv = conv(16, 16, 14, 7, 3, 1, 1, 16), .unit = 512}),
    codes("depthwise_padding_of_255", {.conv = conv(40, 40, 13, 3, 1, 1, 1, 40), .padding = 255, .unit = 512}),
    codes("depthwise_padding_of_128_strided", {.conv = conv(16, 16, 10, 5, 2, 2, 1, 16), .padding = 128, .unit = 512}),
    codes("depthwise_signs_padded",
          {.conv = conv(24, 24, 9, 3, 1, 1, 1, 24), .padding = -128, .unit = 256, .with_signs = true}),
    codes("depthwise_signs_padding_of_5",
          {.conv = conv(40, 40, 15, 5, 2, 1, 1, 40), .padding = 5, .unit = 512, .with_signs = true}),
    codes("depthwise_residual", {.conv = with_residual(conv(40, 40, 14, 3, 1, 1, 1, 40), "2"), .unit = 256}),
    codes("depthwise_near_the_end",
          {.conv = conv(16, 16, 9, 3, 1, 1, 1, 16), .unit = 1 << 24, .extreme = true, .full = true}),
    codes("depthwise_strided", {.conv = conv(24, 24, 11, 5, 2, 2, 1, 24), .zero = 128, .unit = 64, .extreme = true}),
    codes("signs", {.conv = conv(24, 40, 6, 3, 1), .padding = -5, .unit = 2048, .with_signs = true}),
    codes("signs_saturate", {.conv = conv(64, 32, 4, 1), .unit = 64, .extreme = true, .with_signs = true}),
    codes("signs_depthwise", {.conv = conv(24, 24, 7, 3, 1, 1, 1, 24), .unit = 64, .with_signs = true}),
    codes("residual", {.conv = with_residual(conv(32, 80, 4, 1), "3"), .unit = 512}),
    // blocks of 64 channels where matrices multiply them
    codes("rows_of_matrices", {.conv = conv(128, 128, 7, 3, 1), .zero = 128, .unit = 4096, .extreme = true}),
    codes("rows_of_matrices_padded", {.conv = conv(64, 36, 9, 3, 1, 2), .padding = 255, .unit = 4096}),
    codes("rows_of_matrices_of_signs", {.conv = conv(64, 64, 5, 3, 2, 1, 2), .padding = 127, .with_signs = true}),
    codes("rows_of_matrices_three_at_once", {.conv = conv(64, 40, 4, 3, 1), .padding = 3, .unit = 2048}),
    codes("rows_of_matrices_strided", {.conv = conv(64, 32, 14, 3, 1, 2), .padding = 128, .unit = 2048}),
    codes("rows_of_matrices_strided_apart", {.conv = with_residual(conv(64, 64, 13, 1, 0, 2)), .unit = 512}),
    codes("taps_of_rows_at_once", {.conv = conv(3, 64, 37, 7, 3, 2), .padding = 114, .zero = 9, .unit = 1024}),
    codes("taps_of_rows_at_once_of_signs", {.conv = conv(4, 20, 23, 3, 1), .padding = -7, .with_signs = true}),
    codes("taps_of_rows_at_once_narrow", {.conv = conv(2, 33, 9, 5, 2), .unit = 512}),
    codes("rows_of_matrices_in_groups", {.conv = conv(128, 64, 6, 3, 1, 1, 1, 2), .unit = 4096}),
    codes("rows_of_matrices_residual", {.conv = with_residual(conv(192, 128, 6, 1), "2"), .unit = 512}),
    codes("gelu", {.conv = conv(20, 36, 6, 3, 1), .unit = 512, .chain = true}),
    codes("gelu_depthwise", {.conv = conv(40, 40, 9, 3, 1, 1, 1, 40), .zero = 128, .unit = 256, .chain = true}),
    codes("gelu_of_matrices", {.conv = conv(64, 40, 5, 1), .zero = 9, .unit = 2048, .chain = true}),
    codes("half_a_vector", {.conv = conv(32, 24, 9, 1), .unit = 512}),
    codes("half_a_vector_padded", {.conv = conv(20, 24, 9, 3, 1), .padding = 5, .unit = 512}),
    codes("half_a_vector_of_signs", {.conv = conv(36, 40, 7, 3, 1), .padding = -5, .unit = 512, .with_signs = true}),
    codes("half_a_vector_residual", {.conv = with_residual(conv(32, 72, 5, 1), "2"), .unit = 512}),
    codes("middle_pair", {.conv = with_residual(conv(32, 64, 5, 1)), .unit = 512, .middle = true}),
};

/// Shapes, zero points and steps that nobody chose; half of them of extreme codes, a third with ties planted.
std::vector<Case> drawn_cases() {
  std::vector<Case> all;
  std::mt19937 draw(19);
  const auto one_of = [&](std::initializer_list<int> values) { return values.begin()[draw() % values.size()]; };
  for (int i = 0, count = drawn_count(); i < count; ++i) {
    const int kernel = one_of({1, 1, 3, 3, 5}), group = one_of({1, 1, 1, 2, 0});
    Codes v;
    const int size = kernel == 1 ? one_of({5, 13, 33}) : kernel == 3 ? one_of({5, 7, 9}) : 5;
    v.conv = conv(one_of({3, 16, 17, 31, 32, 33}), one_of({8, 16, 31, 40}), size, kernel, one_of({0, kernel / 2}),
                  one_of({1, 1, 2}), kernel == 3 ? one_of({1, 1, 2}) : 1);
    if (group == 2) v.conv.c = v.conv.o = 64, v.conv.group = 2;
    if (group == 0) v.conv.o = v.conv.group = v.conv.c;
    v.with_signs = draw() % 3 == 0;
    v.padding = v.with_signs ? one_of({-128, 0, 127}) : one_of({0, 128, 255});
    v.zero = one_of({0, 128, 255});
    v.unit = one_of({64, 512, 4096});
    v.extreme = draw() % 2 == 0;
    v.conv.residual = draw() % 4 == 0;
    v.conv.n = draw() % 4 == 0 ? "2" : "1";
    v.full = draw() % 8 == 0;
    if (v.full) v.unit = 1 << 24;
    if (conv_extent(v.conv.h, kernel, v.conv) < 1) continue;
    all.push_back(codes("drawn_" + std::to_string(i), v));
  }
  return all;
}

/// With byte products too, where this machine has them.
std::vector<TargetInfo> targets() {
  std::vector<TargetInfo> all = runnable_targets();
  for (TargetInfo& t : targets_here({"cpu:avx512-vnni", "cpu:avx2-vnni", "cpu:avx512-amx"}))
    all.push_back(std::move(t));
  return all;
}

}  // namespace

TEST(CodesAssembly, ProductsAreAloneInTheirLoops) {
  const std::map<std::string, Conv> convs = {{"3x3", conv(64, 64, 14, 3, 1)},
                                             {"1x1", conv(128, 64, 14, 1)},
                                             {"1x1 of few channels", conv(24, 144, 28, 1)},
                                             {"1x1 of 16 channels", conv(16, 96, 56, 1)},
                                             {"strided", conv(64, 64, 14, 3, 1, 2)},
                                             {"depthwise", conv(64, 64, 28, 3, 1, 1, 1, 64)}};
  for (const char* name : {"cpu:avx512-amx", "cpu:avx512-vnni", "cpu:avx512", "cpu:avx2"}) {
    const TargetInfo target = parse_target(name);
    for (const auto& [title, c] : convs) {
      SCOPED_TRACE(std::string(name) + " " + title);
      expect_clean_products(spec_of(codes(title, {.conv = c, .unit = 512}), target), target, "vpdpbusd|vpmaddwd|tdpb");
    }
  }
}

std::string assembly_of(const Codes& codes_of, const TargetInfo& target) {
  CodegenOptions options;
  options.emit_assembly = true;
  return generate({spec_of(codes("", codes_of), target)}, target, options).kernels[0].assembly;
}

TEST(CodesAssembly, SumsBeginWithTheBias) {
  const TargetInfo target = parse_target("cpu:avx512-vnni");
  const Codes pointwise{.conv = conv(16, 96, 56, 1), .unit = 512};
  const Codes depthwise{.conv = conv(64, 64, 28, 3, 1, 1, 1, 64), .unit = 512};
  for (const Codes& v : {pointwise, depthwise}) EXPECT_EQ(assembly_of(v, target).find("vpaddd"), std::string::npos);
}

TEST(CodesAssembly, DepthwiseWordsAreTurnedByOneShuffleOfBytes) {
  TargetInfo target = parse_target("cpu:avx512-vnni");
  const Codes depthwise{.conv = conv(64, 64, 28, 3, 1, 1, 1, 64), .unit = 512};
  EXPECT_EQ(assembly_of(depthwise, target).find("vpermb"), std::string::npos);
  target.features.emplace_back("avx512vbmi");
  const std::string text = assembly_of(depthwise, target);
  EXPECT_NE(text.find("vpermb"), std::string::npos);
  EXPECT_EQ(text.find("vpshufb"), std::string::npos);
}

TEST(CodesSchedule, TwoPixelsShareTheLastVector) {
  const auto half = [](const char* target, int channels) {
    return spec_of(codes("", {.conv = conv(32, channels, 14, 1), .unit = 512}), parse_target(target))
        .schedule.get("half", 0);
  };
  EXPECT_EQ(half("cpu:avx512-vnni", 24), 1);
  EXPECT_EQ(half("cpu:avx512-vnni", 32), 0);
  EXPECT_EQ(half("cpu:avx512", 24), 0) << "a product is several instructions";
}

/// While the results of a tile are rounded, a core multiplies for the next one, if it sees that far.
TEST(CodesSchedule, ShortSumsHaveSmallTiles) {
  const auto sums = [](int channels) {
    const Schedule s =
        spec_of(codes("", {.conv = conv(channels, 96, 56, 1), .unit = 512}), parse_target("cpu:avx512-vnni")).schedule;
    return s.get("nv", 1) * s.get("tile_w", 1);
  };
  EXPECT_LE(sums(16), 18);
  EXPECT_GE(sums(512), 24);
}

class CodesTest : public testing::TestWithParam<std::tuple<Case, TargetInfo>> {};

TEST_P(CodesTest, HasTheInterpretersBits) {
  const auto& [c, target] = GetParam();
  const KernelSpec spec = spec_of(c, target);
  const bool fast = spec.schedule.skeleton == "contraction" || spec.schedule.skeleton == "window";
  ASSERT_TRUE(fast || c.name.starts_with("drawn")) << spec.schedule.text();  // drawn padding may be of neither
  check_spec(c, spec, target);
}

INSTANTIATE_TEST_SUITE_P(Drawn, CodesTest,
                         testing::Combine(testing::ValuesIn(drawn_cases()), testing::ValuesIn(targets())),
                         [](const auto& info) { return case_name(std::get<0>(info.param), std::get<1>(info.param)); });
INSTANTIATE_TEST_SUITE_P(Kernels, CodesTest, testing::Combine(testing::ValuesIn(kCases), testing::ValuesIn(targets())),
                         [](const auto& info) { return case_name(std::get<0>(info.param), std::get<1>(info.param)); });

namespace {

const std::vector<Case> kTransformed = {
    codes("even", {.conv = conv(16, 32, 8, 3, 1), .unit = 2048}),
    codes("odd_size", {.conv = conv(32, 24, 7, 3, 1), .zero = 128, .unit = 2048}),
    codes("odd_channels", {.conv = conv(19, 21, 9, 3, 1), .zero = 255, .unit = 2048}),
    codes("few_channels", {.conv = conv(5, 3, 6, 3, 1), .unit = 256}),
    codes("no_padding", {.conv = conv(16, 16, 9, 3), .unit = 1024}),
    codes("tiny", {.conv = conv(16, 20, 2, 3, 1), .padding = 7, .unit = 1024}),
    codes("wide_padding_of_128", {.conv = conv(17, 20, 3, 3, 4), .padding = 128, .zero = 255, .unit = 2048}),
    codes("padding_of_255", {.conv = conv(33, 17, 6, 3, 1), .padding = 255, .unit = 1024}),
    codes("saturates", {.conv = conv(48, 16, 6, 3, 1), .unit = 64, .extreme = true}),
    codes("signs", {.conv = conv(24, 24, 7, 3, 1), .padding = -5, .unit = 2048, .with_signs = true}),
    codes("signs_saturate",
          {.conv = conv(64, 16, 5, 3, 1), .padding = 127, .unit = 64, .extreme = true, .with_signs = true}),
    codes("residual", {.conv = with_residual(conv(16, 36, 5, 3, 1), "3"), .unit = 1024}),
    codes("middle_pair", {.conv = with_residual(conv(16, 32, 5, 3, 1)), .unit = 512, .middle = true}),
    codes("groups", {.conv = conv(32, 32, 6, 3, 1, 1, 1, 2), .padding = 9, .unit = 2048}),
    codes("gelu", {.conv = conv(20, 20, 8, 3, 1), .unit = 512, .chain = true}),
    codes("near_the_end_of_i32",
          {.conv = conv(20, 16, 6, 3, 1), .padding = 255, .unit = 1 << 24, .extreme = true, .full = true}),
    // 2^6 times these sums are the last ones in i32
    codes("at_the_bound", {.conv = conv(115, 4, 4, 3, 1), .padding = 255, .unit = 1 << 20, .same = 127}),
    codes("at_the_lower_bound", {.conv = conv(114, 4, 4, 3, 1), .padding = 255, .unit = 1 << 20, .same = -128}),
    codes("many_parts", {.conv = conv(5, 16, 29, 3, 1), .padding = 3, .unit = 1024}),
};

/// The case with its weights transformed, which they may be.
KernelSpec transformed(const Case& c, const WinogradTile& tile, const TargetInfo& target) {
  KernelSpec spec = spec_of(c, target);
  const auto found = view_winograd(spec.region, 0);
  EXPECT_TRUE(std::holds_alternative<WinogradView>(found)) << std::get<std::string>(found);
  const auto& view = std::get<WinogradView>(found);
  const Stage& stage = spec.region.stages[0];
  const auto weights = static_cast<size_t>(stage.reads[static_cast<size_t>(view.contraction.weights)].index);
  EXPECT_EQ(winograd::codes_bound(c.operands[weights], tile.h, tile.w), "");
  const int64_t vectors = winograd_vectors(stage, view, tile, target);
  spec.layouts[weights].layout = winograd_weights(view, tile, vectors, target);
  spec.layouts[weights].strides = dense_strides(spec.layouts[weights].layout, spec.region.params[weights].type.shape);
  spec.schedule = choose_schedule(spec.region, spec.layouts, target);
  return spec;
}

}  // namespace

class WinogradOfCodes : public testing::TestWithParam<std::tuple<Case, WinogradTile, TargetInfo>> {};

TEST_P(WinogradOfCodes, HasTheInterpretersBits) {
  const auto& [c, tile, target] = GetParam();
  const KernelSpec spec = transformed(c, tile, target);
  ASSERT_EQ(spec.schedule.get("winograd_h", 0), tile.h) << spec.schedule.text();
  check_spec(c, spec, target);
}

TEST(CodesAssembly, TransformedProductsAreAloneInTheirLoops) {
  for (const char* name : {"cpu:avx512", "cpu:avx2"})
    for (const WinogradTile& tile : {WinogradTile{2, 2}, WinogradTile{4, 4}}) {
      SCOPED_TRACE(fmt::format("{} F({}x{})", name, tile.h, tile.w));
      const TargetInfo target = parse_target(name);
      const Case c = codes("3x3", {.conv = conv(64, 64, 28, 3, 1), .unit = 512});
      expect_clean_products(transformed(c, tile, target), target, "vpmaddwd");
    }
}

/// Every case in the largest tile; every third in the others, and on a target without VEX.
std::vector<std::tuple<Case, WinogradTile, TargetInfo>> transformed_cases() {
  std::vector<std::tuple<Case, WinogradTile, TargetInfo>> all;
  for (size_t i = 0; i < kTransformed.size(); ++i)
    for (const TargetInfo& target : runnable_targets())
      for (const WinogradTile& tile : {WinogradTile{4, 4}, WinogradTile{2, 2}, WinogradTile{4, 2}})
        if (i % 3 == 0 || (tile.w == 4 && target.name != "cpu:baseline"))
          all.emplace_back(kTransformed[i], tile, target);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kernels, WinogradOfCodes, testing::ValuesIn(transformed_cases()), [](const auto& info) {
  const WinogradTile& t = std::get<1>(info.param);
  return case_name(std::get<0>(info.param), std::get<2>(info.param)) + fmt::format("_f{}x{}", t.h, t.w);
});

}  // namespace opfuse::test
