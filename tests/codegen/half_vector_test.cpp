// Contractions whose last channels fill half a vector, which two pixels share.
#include "codegen/chain_regions.hpp"
#include "codegen/run_kernel.hpp"
#include "cpu/contraction/register_tile.hpp"

namespace opfuse::test {
namespace {

const TargetInfo kTarget = parse_target("cpu:avx512");
const std::vector<SymbolValues> kBatches = {{{"n", 1}}, {{"n", 2}}, {{"n", 3}}, {{"n", 17}}};

std::vector<SymbolValues> every_number_of_rows() {
  std::vector<SymbolValues> bindings;
  for (int64_t n = 1; n <= 61; ++n) bindings.push_back({{"n", n}});
  return bindings;
}

Conv pointwise(int c, int h, int w, int o) { return {.c = c, .h = h, .w = w, .o = o, .kh = 1, .kw = 1, .pad = 0}; }

Conv with_residual(Conv v) {
  v.residual = true;
  v.activation = "div({0}, add(1, exp(neg({0}))))";
  return v;
}

/// A pointwise convolution of pixels and images of open number.
std::string open_image(int o) {
  return fmt::format(
      "region\nparam input f32[n,16,h,w]\nparam constant f32[{0},16,3,3]\nparam output f32[n,{0},h,w]\n"
      "stage contraction\n  domain [n,{0},h,w]\n  reduce [16,3,3]\n"
      "  read param 0 at [a0, a4, a2 + a5 + -1, a3 + a6 + -1]\n  read param 1 at [a1, a4, a5, a6]\n"
      "  reduction sum mul(select(in0, r0, 0), r1)\n  output param 2 f32[n,{0},h,w] at [a0, a1, a2, a3] = s0\n",
      o);
}

std::string with_prologue(int o) {
  return fmt::format(
      "region\nparam input f32[1,20,9,9]\nparam constant f32[{0},20,3,3]\nparam constant f32[20]\n"
      "param output f32[1,{0},9,9]\nstage contraction\n  domain [1,{0},9,9]\n  reduce [20,3,3]\n"
      "  read param 0 at [a0, a4, a2 + a5 + -1, a3 + a6 + -1]\n  read param 1 at [a1, a4, a5, a6]\n"
      "  read param 2 at [a4]\n  reduction sum mul(select(in0, max(mul(r0, r2), 0), 0), r1)\n"
      "  output param 3 f32[1,{0},9,9] at [a0, a1, a2, a3] = s0\n",
      o);
}

/// Two activations: what is taken for weights is packed, behind the last column the last one again.
std::string product(int n, bool turned) {
  return fmt::format(
      "region\nparam input f32[3,41,40]\nparam input f32[3,{1}]\nparam output f32[3,41,{0}]\n"
      "stage contraction\n  domain [3,41,{0}]\n  reduce [40]\n  read param 0 at [a0, a1, a3]\n"
      "  read param 1 at [a0, {2}]\n  reduction sum mul(r0, r1)\n"
      "  output param 2 f32[3,41,{0}] at [a0, a1, a2] = s0\n",
      n, turned ? fmt::format("{},40", n) : fmt::format("40,{}", n), turned ? "a2, a3" : "a3, a2");
}

Case dense_result(std::string name, const Conv& v) {
  Case c = wished(std::move(name), conv_region(v));
  c.layouts = {"", "", "", "0123"};
  return c;
}

const std::vector<Case> kHalves = {
    wished("24", conv_region(pointwise(32, 14, 14, 24))),
    wished("24_odd_pixels", conv_region(pointwise(37, 5, 7, 24))),
    wished("24_two_pixels", conv_region(pointwise(32, 1, 2, 24))),
    wished("24_three_pixels", conv_region(pointwise(32, 1, 3, 24))),
    wished("24_a_pixel_behind_tiles", conv_region(pointwise(16, 1, 37, 24))),
    wished("24_residual", conv_region(with_residual(pointwise(32, 13, 9, 24)))),
    wished("24_batch_unbound", conv_region({.n = "n", .c = 32, .h = 7, .w = 7, .o = 24, .kh = 1, .kw = 1, .pad = 0}),
           kBatches),
    wished("40", conv_region(pointwise(48, 9, 11, 40))),
    wished("56", conv_region(pointwise(16, 9, 9, 56))),
    wished("72_two_blocks", conv_region(pointwise(24, 28, 28, 72))),
    wished("72_odd_residual", conv_region(with_residual(pointwise(24, 5, 5, 72)))),
    wished("120", conv_region(pointwise(40, 9, 9, 120))),
    wished("184_parts_of_outputs", conv_region(pointwise(80, 14, 14, 184))),
    wished("200", conv_region(pointwise(80, 14, 14, 200))),
    wished("17", conv_region(pointwise(16, 9, 9, 17))),
    wished("20_of_a_quarter", conv_region(pointwise(16, 9, 9, 20))),
    wished("many_parts", conv_region(pointwise(96, 56, 56, 24))),
    wished("taps", conv_region({.c = 16, .h = 14, .w = 14, .o = 24})),
    wished("taps_wide", conv_region({.c = 19, .h = 5, .w = 61, .o = 40, .residual = true})),
    wished("taps_two_blocks", conv_region({.c = 16, .h = 9, .w = 31, .o = 72})),
    wished("taps_rows_in_one_tile", conv_region({.c = 16, .h = 7, .w = 7, .o = 24})),
    wished("taps_odd_rows_in_one_tile", conv_region({.c = 16, .h = 5, .w = 3, .o = 40})),
    wished("taps_tiny_map", conv_region({.c = 16, .h = 2, .w = 2, .o = 24})),
    wished("taps_one_pixel", conv_region({.c = 16, .h = 1, .w = 1, .o = 24})),
    wished("taps_stride_2", conv_region({.c = 16, .h = 15, .w = 17, .o = 24, .stride = 2})),
    wished("taps_dilated", conv_region({.c = 16, .h = 12, .w = 20, .o = 24, .pad = 2, .dilation = 2})),
    wished("taps_dilation_beyond_image", conv_region({.c = 16, .h = 4, .w = 3, .o = 24, .pad = 6, .dilation = 6})),
    wished("taps_of_five", conv_region({.c = 19, .h = 9, .w = 31, .o = 37, .kh = 5, .kw = 5, .pad = 2})),
    wished("taps_without_padding", conv_region({.c = 16, .h = 9, .w = 20, .o = 24, .pad = 0})),
    wished("taps_few_channels", conv_region({.c = 3, .h = 38, .w = 34, .o = 24, .kh = 7, .kw = 7, .stride = 2})),
    wished("padding_without_taps", conv_region({.c = 16, .h = 5, .w = 6, .o = 24, .kh = 1, .kw = 1, .pad = 1})),
    wished("image_unbound", open_image(24),
           {{{"n", 1}, {"h", 5}, {"w", 40}}, {{"n", 2}, {"h", 3}, {"w", 1}}, {{"n", 1}, {"h", 1}, {"w", 19}}}),
    wished("rows_unbound_24", gemm_region("n", 24, 40), every_number_of_rows()),
    wished("rows_unbound_40", gemm_region("n", 40, 40), every_number_of_rows()),
    wished("rows_unbound_72", gemm_region("n", 72, 40), every_number_of_rows()),
    wished("prologue", with_prologue(24)),
    wished("packed", product(24, false)),
    wished("packed_turned", product(37, true)),
    wished("one_dimension_of_pixels", gemm_region("29", 40, 70)),
    wished("chain_24", chain_region(sized(16, 14, 13, 24))),
    wished("chain_72", chain_region(sized(16, 29, 27, 72))),
    dense_result("dense_result", pointwise(32, 9, 9, 24)),
};
OPFUSE_CASES(HalfVector, kHalves);

int64_t half_of(const std::string& region, const TargetInfo& target = kTarget) {
  return spec_of(wished("", region), target).schedule.get("half", 0);
}

TEST(HalfVectorSchedule, pixels_share_what_a_last_vector_leaves) {
  for (int o : {17, 20, 24, 40, 56, 72, 120, 184}) EXPECT_EQ(half_of(conv_region(pointwise(32, 28, 28, o))), 1) << o;
  EXPECT_EQ(half_of(conv_region({.c = 16, .h = 14, .w = 14, .o = 24})), 1);
  EXPECT_EQ(half_of(product(24, false)), 1);
  EXPECT_EQ(half_of(chain_region(sized(16, 28, 28, 24))), 1);
  const Schedule s = spec_of(wished("", conv_region(pointwise(96, 56, 56, 24))), kTarget).schedule;
  EXPECT_EQ(s.get("tile_w", 0), 18) << "27 accumulators: " << s.text();
}

TEST(HalfVectorSchedule, others_keep_their_vectors) {
  for (int o : {8, 16, 25, 28, 32, 48, 64, 96}) EXPECT_EQ(half_of(conv_region(pointwise(32, 28, 28, o))), 0) << o;
  EXPECT_EQ(half_of(conv_region(pointwise(32, 1, 1, 24))), 0) << "one pixel";
  EXPECT_EQ(half_of(conv_region(pointwise(80, 14, 14, 200))), 0) << "a last vector alone waits for loads";
  EXPECT_EQ(half_of(conv_region({.c = 80, .h = 6, .w = 7, .o = 96, .group = 4})), 0) << "groups of 24";
  for (const char* target : {"cpu:avx2", "cpu:baseline"})
    for (int o : {4, 12, 20, 24})
      EXPECT_EQ(half_of(conv_region(pointwise(32, 28, 28, o)), parse_target(target)), 0) << target << " " << o;
}

/// Sums at rest between passes over channels are those of pairs.
TEST(HalfVectorSchedule, passes_keep_pairs) {
  for (const TargetInfo& target : runnable_targets())
    for (const int64_t pixels : {61, 18})
      for (const int outputs : {24, 72}) {
        const Case c =
            wished("passes", conv_region(with_residual(pointwise(160, 1, static_cast<int>(pixels), outputs))));
        KernelSpec spec = spec_of(c, target);
        spec.schedule.set("parts_o", 1);
        spec.schedule.set("parts_p", 1);
        spec.schedule.set("chunk", 2);
        spec.schedule.set("k_block", 64);
        check_spec(c, spec, target);
      }
}

TEST(HalfVectorTile, takes_a_quarter_less_than_whole_vectors) {
  const TileProblem whole{32, 3136}, half{24, 3136};
  const double before = tile_cycles(whole, choose_tile(whole, kTarget), kTarget);
  EXPECT_NEAR(tile_cycles(half, choose_tile(half, kTarget), kTarget) / before, 0.75, 0.02);
  TileProblem groups = half;
  groups.grouped = true;
  EXPECT_EQ(tile_cycles(groups, choose_tile(groups, kTarget), kTarget), before);
}

}  // namespace
}  // namespace opfuse::test
