// Convolutions with pixels in the lanes: few outputs, ragged groups, dense layouts.
#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"
#include "cpu/pixels/pixel_view.hpp"
#include "cpu/schedules.hpp"

namespace opfuse::test {
namespace {

const std::vector<SymbolValues> kBatches = {{{"n", 1}}, {{"n", 2}}, {{"n", 3}}, {{"n", 17}}};

/// With dense weights, as the form wants them; activations dense, or in blocks of the target's lanes.
struct PixelCase {
  std::string name;
  Conv conv;
  bool blocked_in = false, blocked_out = false;
  std::vector<SymbolValues> bindings = {{}};
};

inline void PrintTo(const PixelCase& c, std::ostream* out) { *out << c.name; }

Case with_layouts(const PixelCase& c, const TargetInfo& target) {
  const std::string blocked = Layout::channels_blocked(4, 1, target.lanes_f32()).text();
  Case made;
  made.name = c.name;
  made.region = conv_region(c.conv);
  made.bindings = c.bindings;
  const Region region = parse_region(made.region);
  for (const Param& p : region.params) {
    const bool image = p.type.shape.rank() == 4 && p.role != ParamRole::constant;
    const bool in_blocks =
        image && (p.role == ParamRole::output || &p != &region.params[0] ? c.blocked_out : c.blocked_in);
    made.layouts.push_back(in_blocks ? blocked : "");
  }
  return made;
}

KernelSpec pixel_spec(const Case& c, const TargetInfo& target) {
  KernelSpec spec = spec_of(c, target);
  const auto schedules = schedule_pixels(spec.region, spec.layouts, target, 1);
  EXPECT_EQ(schedules.size(), 1) << c.name;
  if (!schedules.empty()) spec.schedule = erased("pixels", schedules.front().choice);
  return spec;
}

const Conv kOdd{.c = 21, .h = 9, .w = 19, .o = 13};

const std::vector<PixelCase> kCases = {
    {"dense", kOdd},
    {"dense_in", kOdd, false, true},
    {"dense_out", kOdd, true, false},
    {"blocked", kOdd, true, true},
    {"residual", {.c = 5, .h = 9, .w = 19, .o = 13, .residual = true}, true, true},
    {"residual_dense", {.c = 5, .h = 9, .w = 19, .o = 13, .residual = true}, false, false},
    {"exp", {.c = 5, .h = 9, .w = 19, .o = 13, .activation = "exp({})"}, true, true},
    {"one_output", {.c = 19, .h = 8, .w = 17, .o = 1}, true, true},
    {"one_channel", {.c = 1, .h = 8, .w = 17, .o = 7}, false, true},
    {"one_pixel", {.c = 7, .h = 1, .w = 1, .o = 5}, true, true},
    {"one_row", {.c = 7, .h = 1, .w = 40, .o = 5}, true, true},
    {"one_column", {.c = 7, .h = 40, .w = 1, .o = 5}, true, true},
    {"pointwise", {.c = 37, .h = 11, .w = 13, .o = 9, .kh = 1, .kw = 1, .pad = 0}, true, true},
    {"pointwise_stride_2", {.c = 20, .h = 11, .w = 14, .o = 9, .kh = 1, .kw = 1, .stride = 2, .pad = 0}, true, true},
    {"pointwise_padded", {.c = 5, .h = 5, .w = 7, .o = 9, .kh = 1, .kw = 1, .pad = 2}, true, true},
    {"no_padding", {.c = 5, .h = 9, .w = 20, .o = 9, .pad = 0}, true, true},
    {"much_padding", {.c = 5, .h = 6, .w = 7, .o = 9, .pad = 5}, true, true},
    {"stride_2", {.c = 18, .h = 15, .w = 37, .o = 11, .stride = 2}, true, true},
    {"stride_2_dense", {.c = 3, .h = 16, .w = 70, .o = 11, .kh = 5, .kw = 5, .stride = 2, .pad = 2}},
    {"stride_3", {.c = 5, .h = 17, .w = 50, .o = 4, .kh = 5, .kw = 5, .stride = 3, .pad = 2}, true, true},
    {"dilated", {.c = 18, .h = 12, .w = 21, .o = 6, .pad = 2, .dilation = 2}, true, true},
    {"dilated_stride_2", {.c = 6, .h = 23, .w = 21, .o = 6, .stride = 2, .pad = 2, .dilation = 2}, true, true},
    {"dilated_stride_2_by_3", {.c = 6, .h = 23, .w = 21, .o = 6, .stride = 2, .pad = 3, .dilation = 3}, true, true},
    {"dilation_beyond_image", {.c = 6, .h = 4, .w = 3, .o = 6, .pad = 6, .dilation = 6}, true, true},
    {"kernel_1x7", {.c = 6, .h = 8, .w = 17, .o = 10, .kh = 1, .kw = 7, .pad = 3}, true, true},
    {"kernel_7x7", {.c = 3, .h = 30, .w = 31, .o = 10, .kh = 7, .kw = 7, .pad = 3}, false, true},
    {"groups_2", {.c = 50, .h = 9, .w = 11, .o = 26, .group = 2}, true, true},
    {"groups_3_to_5", {.c = 18, .h = 6, .w = 7, .o = 30, .group = 6}, true, true},
    {"groups_3_dense", {.c = 18, .h = 6, .w = 7, .o = 30, .group = 6}},
    {"groups_one_output", {.c = 24, .h = 9, .w = 11, .o = 4, .group = 4}, true, true},
    {"groups_many_channels", {.c = 396, .h = 28, .w = 40, .o = 12, .group = 4}, true, true},
    {"groups_many_channels_dense", {.c = 396, .h = 28, .w = 40, .o = 12, .group = 4}},
    {"depth_multiplier_3", {.c = 10, .h = 7, .w = 9, .o = 30, .group = 10}, true, true},
    {"depthwise_dense", {.c = 10, .h = 17, .w = 29, .o = 10, .group = 10}},
    {"depthwise_dense_5x5_stride_2",
     {.c = 10, .h = 17, .w = 29, .o = 10, .kh = 5, .kw = 5, .stride = 2, .pad = 2, .group = 10}},
    {"batch", {.n = "3", .c = 7, .h = 9, .w = 9, .o = 5}, true, true},
    {"unbound", {.n = "n", .c = 7, .h = 9, .w = 9, .o = 5}, true, true, kBatches},
    {"bands", {.n = "2", .c = 64, .h = 61, .w = 67, .o = 7}, true, true},
};

class Pixels : public testing::TestWithParam<std::tuple<PixelCase, TargetInfo>> {};
TEST_P(Pixels, matches_the_interpreter) {
  const auto& [c, target] = GetParam();
  const Case made = with_layouts(c, target);
  check_spec(made, pixel_spec(made, target), target);
}
INSTANTIATE_TEST_SUITE_P(Kernels, Pixels,
                         testing::Combine(testing::ValuesIn(kCases), testing::ValuesIn(runnable_targets())),
                         [](const auto& info) {
                           Case named;
                           named.name = std::get<0>(info.param).name;
                           return case_name(named, std::get<1>(info.param));
                         });

bool pay(const Conv& v) { return pixels_pay(parse_region(conv_region(v)), parse_target("cpu:avx512")); }

TEST(PixelSchedule, few_outputs_and_ragged_groups_put_pixels_in_the_lanes) {
  EXPECT_TRUE(pay({.c = 64, .h = 28, .w = 28, .o = 9}));
  EXPECT_TRUE(pay({.c = 48, .h = 47, .w = 48, .o = 12, .group = 4}));
  EXPECT_TRUE(pay({.c = 90, .h = 82, .w = 84, .o = 21, .group = 3}));
}

TEST(PixelSchedule, whole_vectors_of_outputs_stay_in_the_lanes) {
  EXPECT_FALSE(pay({.c = 64, .h = 56, .w = 56, .o = 64}));
  EXPECT_FALSE(pay({.c = 64, .h = 28, .w = 28, .o = 64, .group = 4}));
  EXPECT_FALSE(pay({.c = 512, .h = 7, .w = 7, .o = 512}));
  EXPECT_FALSE(pay({.c = 32, .h = 28, .w = 28, .o = 32, .group = 32}));
}

TEST(PixelSchedule, what_is_no_image_convolution_is_not_seen_as_one) {
  EXPECT_FALSE(view_pixels(parse_region(gemm_region("5", 19, 33))));
  EXPECT_FALSE(view_pixels(parse_region(pool_region({.c = 19}, "max"))));
}

}  // namespace
}  // namespace opfuse::test
