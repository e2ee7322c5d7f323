// Sums of codes whose weights lie in pairs, against the interpreter in every bit: where none is too large, and where
// what is too much of many is multiplied once more.
#include "codegen/codes_cases.hpp"
#include "codegen/hot_loops.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/paired_weights.hpp"
#include "kernel/collapse.hpp"
#include "tensor/paired_codes.hpp"
#include "testing/runs_here.hpp"

namespace opfuse::test {
namespace {

TargetInfo avx2() { return parse_target("cpu:avx2"); }

struct PairedSpec {
  KernelSpec spec;
  double extras = 0;
};

/// The case with its weights in pairs, as tune/pair_codes.cpp lays them out.
PairedSpec in_pairs(const Case& c, const TargetInfo& target) {
  PairedSpec paired{spec_of(c, target)};
  KernelSpec& spec = paired.spec;
  const auto found = view_products(spec.region, 0);
  const auto& view = std::get<ContractionView>(found);
  const Stage& stage = spec.region.stages[0];
  const auto at = static_cast<size_t>(stage.reads[static_cast<size_t>(view.weights)].index);
  const auto [layout, extras] =
      pair_weights(view, axis_extent(stage, view.vec).value(), channel_depth(stage, view), c.operands[at], target);
  spec.layouts[at] = {layout, dense_strides(layout, spec.region.params[at].type.shape)};
  spec.schedule = choose_schedule(spec.region, spec.layouts, target);
  paired.extras = extras;
  return paired;
}

Case with_weights(Case c, const std::function<int64_t(int64_t)>& weight) {
  for (Tensor& t : c.operands)
    if (t.dtype() == DType::i8 && &t != &c.operands[0])
      for (int64_t i = 0; i < t.elements(); ++i) t.set_integer(i, weight(i));
  return c;
}

const std::vector<Case> kPaired = {
    codes("one_by_one", {.conv = conv(64, 64, 6, 1)}),
    codes("one_pixel", {.conv = conv(64, 32, 1, 1)}),
    codes("seven_by_seven", {.conv = conv(128, 48, 7, 1), .zero = 255, .unit = 1024}),
    codes("ragged_outputs", {.conv = conv(40, 51, 6, 1), .zero = 128, .unit = 256}),
    codes("one_vector", {.conv = conv(32, 24, 9, 1), .unit = 512}),
    codes("few_outputs", {.conv = conv(24, 3, 5, 1), .unit = 256}),
    codes("strided", {.conv = conv(64, 32, 9, 1, 0, 2), .unit = 512}),
    codes("extremes", {.conv = conv(96, 32, 5, 1), .unit = 512, .extreme = true}),
    codes("signs", {.conv = conv(64, 40, 6, 1), .unit = 1024, .with_signs = true}),
    codes("signs_of_extremes", {.conv = conv(64, 32, 4, 1), .unit = 64, .extreme = true, .with_signs = true}),
    codes("residual", {.conv = with_residual(conv(32, 80, 4, 1), "3"), .unit = 512}),
    codes("middle_pair", {.conv = with_residual(conv(32, 64, 5, 1)), .unit = 512, .middle = true}),
    codes("chain", {.conv = conv(64, 40, 5, 1), .zero = 9, .unit = 2048, .chain = true}),
    codes("near_the_end_of_i32",
          {.conv = conv(40, 33, 5, 1), .zero = 128, .unit = 1 << 24, .extreme = true, .full = true}),
    codes("largest_of_all", {.conv = conv(64, 32, 5, 1), .unit = 1 << 14, .same = 127}),
    codes("least_of_all", {.conv = conv(64, 32, 5, 1), .unit = 1 << 14, .same = -128}),
    codes("many_parts", {.conv = conv(32, 64, 28, 1), .unit = 1024}),
    codes("many_channels", {.conv = conv(2304, 32, 3, 1), .unit = 4096}),
    rows("rows", 40, 48, 128, "u8", true),
    rows("rows_of_signs", 33, 64, 64, "i8", true),
    rows("rows_of_48", 20, 32, 48, "u8", false),
    rows("rows_of_40_ragged", 19, 37, 40, "u8", false),
    rows("rows_of_8", 5, 16, 8, "i8", true),
    rows("one_row", 1, 64, 96, "u8", false),
    rows("rows_of_many_channels", 9, 32, 2824, "u8", false),
    rows("rows_of_gelu", 37, 64, 128, "u8", false, true),
};

class PairsTest : public testing::TestWithParam<Case> {};

}  // namespace

TEST_P(PairsTest, HasTheInterpretersBits) {
  const TargetInfo target = avx2();
  if (!runs_here(target)) GTEST_SKIP() << "no AVX2 here";
  const KernelSpec spec = in_pairs(GetParam(), target).spec;
  ASSERT_EQ(spec.schedule.get("paired", 0), 1) << spec.schedule.text();
  check_spec(GetParam(), spec, target);
}

INSTANTIATE_TEST_SUITE_P(Kernels, PairsTest, testing::ValuesIn(kPaired),
                         [](const auto& info) { return case_name(info.param, avx2()); });

/// Pairs at the bound on either side, and one beyond it, with data of 255.
TEST(Pairs, AreExactAtTheirBound) {
  const TargetInfo target = avx2();
  if (!runs_here(target)) GTEST_SKIP() << "no AVX2 here";
  for (const int64_t one : {64, 65, -64, -65, 127, -128}) {
    const int64_t other = one > 0 ? 64 : -64;
    SCOPED_TRACE(fmt::format("{} and {}", one, other));
    const Case c = with_weights(codes("bound", {.conv = conv(64, 32, 5, 1), .unit = 1 << 14, .same = 1}),
                                [&](int64_t i) { return i % 2 ? one : other; });
    const PairedSpec paired = in_pairs(c, target);
    EXPECT_EQ(paired.extras > 0, std::abs(one + one) > 128 && std::abs(one + other) > 128);
    check_spec(c, paired.spec, target);
  }
}

TEST(Pairs, FindAnOrderWithoutLargeOnes) {
  // neighbours are too large, others are not
  const Case c = with_weights(codes("order", {.conv = conv(64, 32, 5, 1), .unit = 1 << 12}),
                              [](int64_t i) { return i % 8 < 4 ? 100 : -100; });
  EXPECT_EQ(in_pairs(c, avx2()).extras, 0);
}

TEST(Pairs, AreNotMadeOfTapsGroupsOrHalfOctets) {
  const auto may = [](const Conv& v, const char* target) {
    const KernelSpec spec = spec_of(codes("other", {.conv = v}), parse_target(target));
    const Region region = collapse(spec.region, spec.layouts).region;
    const auto found = view_products(region, 0);
    return may_pair_codes(region.stages[0], std::get<ContractionView>(found), parse_target(target));
  };
  EXPECT_TRUE(may(conv(64, 64, 6, 1), "cpu:avx2"));
  EXPECT_FALSE(may(conv(64, 64, 6, 3, 1), "cpu:avx2"));
  EXPECT_FALSE(may(conv(64, 64, 6, 1, 0, 1, 1, 2), "cpu:avx2"));
  EXPECT_FALSE(may(conv(60, 64, 6, 1), "cpu:avx2"));
  EXPECT_FALSE(may(conv(64, 64, 6, 1), "cpu:avx512"));
  EXPECT_FALSE(may(conv(64, 64, 6, 1), "cpu:avx2-vnni"));
}

TEST(PairsAssembly, ProductsAreAloneInTheirLoops) {
  const TargetInfo target = avx2();
  for (const auto& c :
       {codes("image", {.conv = conv(256, 64, 14, 1)}), codes("strided", {.conv = conv(64, 64, 14, 1, 0, 2)}),
        codes("one_vector", {.conv = conv(64, 24, 14, 1)}), rows("rows", 64, 64, 256, "u8", false)}) {
    SCOPED_TRACE(c.name);
    const KernelSpec spec = in_pairs(c, target).spec;
    expect_clean_products(spec, target, "vpmaddubsw");
  }
}

}  // namespace opfuse::test
