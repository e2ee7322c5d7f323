// Register-tiled convolutions and products in the layouts they wish for.
#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

const std::vector<SymbolValues> kBatches = {{{"n", 1}}, {{"n", 2}}, {{"n", 3}}, {{"n", 17}}};

/// Every cut of an open number of rows.
std::vector<SymbolValues> every_number_of_rows() {
  std::vector<SymbolValues> bindings;
  for (int64_t n = 1; n <= 61; ++n) bindings.push_back({{"n", n}});
  return bindings;
}

/// A product over the last axis of an image whose result is stored with the channels first, beside a residual.
std::string turned_product(const std::string& n, int h, int w, int k, int o) {
  const std::string y = fmt::format("[{},{},{},{}]", n, o, h, w);
  return fmt::format(
      "region\nparam input f32[{0},{1},{2},{3}]\nparam constant f32[{3},{4}]\nparam input f32{5}\nparam output f32{5}\n"
      "stage contraction\n  domain [{0},{1},{2},{4}]\n  reduce [{3}]\n  read param 0 at [a0, a1, a2, a4]\n"
      "  read param 1 at [a4, a3]\n  read param 2 at [a0, a3, a1, a2]\n  reduction sum mul(r0, r1)\n"
      "  output param 3 f32{5} at [a0, a3, a1, a2] = add(s0, r2)\n",
      n, h, w, k, o, y);
}

/// Two products of one operand, combined behind them: silu(x A) * (x B + b), and what comes behind it.
std::string gated_product(const std::string& m, int n, int k, const std::string& value = "{}") {
  const std::string gate = "mul(div(s1, add(1, exp(neg(s1)))), add(s0, r3))";
  return fmt::format(
      "region\nparam input f32[{0},{2}]\nparam constant f32[{2},{1}]\nparam constant f32[{2},{1}]\n"
      "param constant f32[{1}]\nparam output f32[{0},{1}]\nstage contraction\n  domain [{0},{1}]\n  reduce [{2}]\n"
      "  read param 0 at [a0, a2]\n  read param 1 at [a2, a1]\n  read param 2 at [a2, a1]\n  read param 3 at [a1]\n"
      "  reduction sum mul(r0, r1)\n  reduction sum mul(r0, r2)\n  output param 4 f32[{0},{1}] at [a0, a1] = {3}\n",
      m, n, k, fmt::format(fmt::runtime(value), gate));
}

/// One output of `taps` taps of which the last lie behind the data, a row of `extent`; one channel.
std::string overhanging(int extent, int taps) {
  return fmt::format(
      "region\nparam input f32[1,1,{0}]\nparam constant f32[1,1,{1}]\nparam output f32[1,1,1]\n"
      "stage contraction\n  domain [1,1,1]\n  reduce [1,{1}]\n  read param 0 at [a0, a3, a2 + a4]\n"
      "  read param 1 at [a1, a3, a4]\n  reduction sum mul(select(in0, r0, 0), r1)\n"
      "  output param 2 f32[1,1,1] at [a0, a1, a2] = s0\n",
      extent, taps);
}

/// One output pixel of one tap, which lies in the padding: the only products are with zero.
std::string beside_the_data(int before, int behind) {
  return fmt::format(
      "region\nparam input f32[1,3,{1}]\nparam constant f32[20,3,1]\nparam output f32[1,20,1]\n"
      "stage contraction\n  domain [1,20,1]\n  reduce [3,1]\n  read param 0 at [a0, a3, a2 + a4 + {0}]\n"
      "  read param 1 at [a1, a3, a4]\n  reduction sum mul(select(in0, r0, 0), r1)\n"
      "  output param 2 f32[1,20,1] at [a0, a1, a2] = add(s0, 1)\n",
      before, behind);
}

/// x x of one array whose rows lie in blocks, as a convolution leaves them: data and weights are one parameter.
const std::string kSquare = R"(region
param input f32[1,17,17]
param output f32[1,17,17]
stage contraction
  domain [1,17,17]
  reduce [17]
  read param 0 at [0, a1, a3]
  read param 0 at [0, a3, a2]
  reduction sum mul(r0, r1)
  output param 1 f32[1,17,17] at [a0, a1, a2] = s0
)";

/// 4 groups of 4 channels to 2: on 16 lanes half a vector of outputs, which reads one vector of data.
const std::string kFewGroups = R"(region
param constant f32[8,4,2]
param input f32[2,16,16]
param output f32[2,8,15]
stage contraction
  domain [2,8,15]
  reduce [4,2]
  read param 0 at [a1, a3, a4]
  read param 1 at [a0, 4*a1/2 + a3, a2 + a4]
  reduction sum mul(r1, r0)
  output param 2 f32[2,8,15] at [a0, a1, a2] = s0
)";

const std::vector<Case> kCases = {
    {.name = "square_of_blocked_rows", .region = kSquare, .layouts = {"012/1:16", "012"}},
    wished("few_groups", kFewGroups),
    wished("overhanging", overhanging(2, 3)),
    wished("overhanging_far", overhanging(1, 61)),
    wished("beside_the_data_before", beside_the_data(-1, 1)),
    wished("beside_the_data_behind", beside_the_data(2, 1)),
    wished("gated", gated_product("40", 96, 64)),
    wished("gated_row", gated_product("1", 520, 70)),
    wished("gated_two_rows", gated_product("2", 75, 33)),
    wished("gated_three_rows", gated_product("3", 19, 130)),
    wished("gated_one_column", gated_product("17", 1, 40)),
    wished("gated_unbound", gated_product("n", 75, 67), kBatches),
    wished("gated_passes", gated_product("30", 48, 6000)),
    wished("gated_epilogue", gated_product("29", 45, 31, "tanh({})")),
    wished("product_turned", turned_product("1", 7, 9, 64, 48)),
    wished("product_turned_odd", turned_product("2", 5, 3, 37, 45)),
    wished("product_turned_unbound", turned_product("n", 4, 5, 20, 19), kBatches),
    wished("conv_3x3", conv_region({.c = 32, .h = 14, .w = 14, .o = 64})),
    wished("conv_3x3_residual", conv_region({.c = 16, .h = 10, .w = 29, .o = 32, .residual = true})),
    wished("conv_3x3_small_map", conv_region({.c = 48, .h = 7, .w = 7, .o = 64})),
    wished("conv_3x3_tiny_map", conv_region({.c = 16, .h = 2, .w = 2, .o = 16})),
    wished("conv_3x3_one_pixel", conv_region({.c = 16, .h = 1, .w = 1, .o = 16})),
    wished("conv_3x3_stride_2", conv_region({.c = 16, .h = 15, .w = 17, .o = 24, .stride = 2})),
    wished("conv_5x5_pad_2", conv_region({.c = 19, .h = 9, .w = 31, .o = 37, .kh = 5, .kw = 5, .pad = 2})),
    wished("conv_dilated", conv_region({.c = 16, .h = 12, .w = 20, .o = 16, .pad = 2, .dilation = 2})),
    wished("conv_dilation_beyond_image", conv_region({.c = 16, .h = 4, .w = 3, .o = 16, .pad = 6, .dilation = 6})),
    wished("conv_no_padding", conv_region({.c = 16, .h = 9, .w = 20, .o = 16, .pad = 0})),
    wished("conv_1x1", conv_region({.c = 64, .h = 14, .w = 14, .o = 48, .kh = 1, .kw = 1, .pad = 0})),
    wished("conv_1x1_odd_channels", conv_region({.c = 67, .h = 5, .w = 5, .o = 45, .kh = 1, .kw = 1, .pad = 0})),
    wished("conv_1x1_stride_2",
           conv_region({.c = 32, .h = 15, .w = 15, .o = 32, .kh = 1, .kw = 1, .stride = 2, .pad = 0})),
    wished("conv_1x1_padded", conv_region({.c = 16, .h = 5, .w = 5, .o = 16, .kh = 1, .kw = 1, .pad = 1})),
    wished("conv_stem", conv_region({.c = 3, .h = 38, .w = 34, .o = 32, .kh = 7, .kw = 7, .stride = 2, .pad = 3})),
    wished("conv_one_channel_in", conv_region({.c = 1, .h = 12, .w = 12, .o = 16})),
    wished("conv_one_channel_out", conv_region({.c = 16, .h = 6, .w = 6, .o = 1})),
    wished("conv_3_channels_out", conv_region({.c = 16, .h = 6, .w = 6, .o = 3, .kh = 1, .kw = 1, .pad = 0})),
    wished("conv_groups_of_16", conv_region({.c = 32, .h = 8, .w = 8, .o = 64, .group = 2})),
    wished("conv_groups_of_4", conv_region({.c = 32, .h = 8, .w = 8, .o = 32, .group = 8})),
    wished("conv_groups_of_8_to_4", conv_region({.c = 64, .h = 6, .w = 9, .o = 32, .group = 8})),
    wished("conv_groups_of_4_to_8", conv_region({.c = 32, .h = 6, .w = 9, .o = 64, .group = 8})),
    wished("conv_groups_of_16_to_24", conv_region({.c = 32, .h = 6, .w = 9, .o = 48, .group = 2})),
    wished("conv_groups_of_2", conv_region({.c = 32, .h = 7, .w = 7, .o = 32, .stride = 2, .group = 16})),
    wished("conv_groups_of_20_to_24", conv_region({.c = 80, .h = 6, .w = 7, .o = 96, .group = 4})),
    wished("conv_groups_of_20_to_16", conv_region({.c = 80, .h = 6, .w = 7, .o = 64, .group = 4})),
    wished("conv_groups_of_3_to_5", conv_region({.c = 18, .h = 6, .w = 7, .o = 30, .group = 6})),
    wished("conv_groups_of_8_odd", conv_region({.c = 24, .h = 6, .w = 7, .o = 24, .group = 3})),
    wished("conv_groups_few_channels", conv_region({.c = 4, .h = 6, .w = 7, .o = 6, .group = 2})),
    wished("conv_depth_multiplier_2", conv_region({.c = 32, .h = 7, .w = 9, .o = 64, .group = 32})),
    wished("conv_depth_multiplier_3", conv_region({.c = 10, .h = 7, .w = 9, .o = 30, .group = 10})),
    wished("conv_exp_epilogue", conv_region({.c = 16, .h = 6, .w = 6, .o = 21, .activation = "exp({})"})),
    wished("conv_silu_epilogue",
           conv_region(
               {.c = 16, .h = 6, .w = 19, .o = 37, .residual = true, .activation = "div({0}, add(1, exp(neg({0}))))"})),
    wished("conv_kernel_1x7", conv_region({.c = 16, .h = 8, .w = 17, .o = 32, .kh = 1, .kw = 7, .pad = 3})),
    wished("conv_unbound_batch", conv_region({.n = "n", .c = 16, .h = 7, .w = 9, .o = 32}), kBatches),
    wished("conv_1x1_unbound_batch",
           conv_region({.n = "n", .c = 32, .h = 7, .w = 7, .o = 32, .kh = 1, .kw = 1, .pad = 0}), kBatches),
    wished("conv_batch_4", conv_region({.n = "4", .c = 16, .h = 9, .w = 9, .o = 32})),
    wished("conv_many_parts", conv_region({.c = 16, .h = 40, .w = 40, .o = 32})),
    wished("conv_5_vectors", conv_region({.c = 16, .h = 9, .w = 28, .o = 80})),
    wished("conv_5_vectors_ragged", conv_region({.c = 19, .h = 9, .w = 28, .o = 67, .residual = true})),
    wished("conv_7_vectors_small_map", conv_region({.c = 16, .h = 5, .w = 5, .o = 104})),
    wished("gemm_5_vectors", gemm_region("286", 75, 64)),
    wished("gemm_row", gemm_region("1", 1000, 512)),
    wished("gemm_rows", gemm_region("37", 130, 70)),
    wished("gemm_untransposed", gemm_region("5", 19, 33, false)),
    wished("gemm_unbound", gemm_region("n", 100, 64), kBatches),
    wished("gemm_one_output", gemm_region("3", 1, 40)),
    wished("gemm_open_rows_1_vector", gemm_region("n", 16, 40), every_number_of_rows()),
    wished("gemm_open_rows_2_vectors", gemm_region("n", 32, 40), every_number_of_rows()),
    wished("gemm_open_rows_3_vectors", gemm_region("n", 45, 40), every_number_of_rows()),
};
OPFUSE_CASES(Contraction, kCases);

const std::string kUnbound = R"(region
param input f32[n,16,h,w]
param constant f32[32,16,3,3]
param output f32[n,32,h,w]
stage contraction
  domain [n,32,h,w]
  reduce [16,3,3]
  read param 0 at [a0, a4, a2 + a5 + -1, a3 + a6 + -1]
  read param 1 at [a1, a4, a5, a6]
  reduction sum mul(select(in0, r0, 0), r1)
  output param 2 f32[n,32,h,w] at [a0, a1, a2, a3] = s0
)";
const std::string kConv1d = R"(region
param input f32[2,16,33]
param constant f32[32,16,5]
param output f32[2,32,33]
stage contraction
  domain [2,32,33]
  reduce [16,5]
  read param 0 at [a0, a3, a2 + a4 + -2]
  read param 1 at [a1, a3, a4]
  reduction sum mul(select(in0, r0, 0), r1)
  output param 2 f32[2,32,33] at [a0, a1, a2] = s0
)";
const std::string kOneOutput1d = R"(region
param input f32[n,20,37]
param constant f32[1,20,7]
param output f32[n,1,37]
stage contraction
  domain [n,1,37]
  reduce [20,7]
  read param 0 at [a0, a3, a2 + 2*a4 + -6]
  read param 1 at [a1, a3, a4]
  reduction sum mul(select(in0, r0, 0), r1)
  output param 2 f32[n,1,37] at [a0, a1, a2] = s0
)";
const std::string kConv3d = R"(region
param input f32[1,16,5,6,7]
param constant f32[32,16,3,3,3]
param output f32[1,32,5,6,7]
stage contraction
  domain [1,32,5,6,7]
  reduce [16,3,3,3]
  read param 0 at [a0, a5, a2 + a6 + -1, a3 + a7 + -1, a4 + a8 + -1]
  read param 1 at [a1, a5, a6, a7, a8]
  reduction sum mul(select(in0, r0, 0), r1)
  output param 2 f32[1,32,5,6,7] at [a0, a1, a2, a3, a4] = s0
)";

/// A product of two activations beside a residual: `right` indexes the second one by batch a0, output a2 and channel
/// a3.
std::string activations(const std::string& batch, const std::string& m, int n, int k, const std::string& right_shape,
                        const std::string& right) {
  const std::string y = fmt::format("[{},{},{}]", batch, m, n);
  return fmt::format(
      "region\nparam input f32[{0},{1},{2}]\nparam input f32{3}\nparam input f32{4}\nparam output f32{4}\n"
      "stage contraction\n  domain {4}\n  reduce [{2}]\n  read param 0 at [a0, a1, a3]\n  read param 1 at [{5}]\n"
      "  read param 2 at [a0, a1, a2]\n  reduction sum mul(r0, r1)\n"
      "  output param 3 f32{4} at [a0, a1, a2] = add(s0, r2)\n",
      batch, m, k, right_shape, y, right);
}

std::string straight(const std::string& batch, const std::string& m, int n, int k) {
  return activations(batch, m, n, k, fmt::format("[{},{},{}]", batch, k, n), "a0, a3, a2");
}

std::string across(const std::string& batch, const std::string& m, int n, int k) {
  return activations(batch, m, n, k, fmt::format("[{},{},{}]", batch, n, k), "a0, a2, a3");
}

std::string shared(const std::string& batch, const std::string& m, int n, int k) {
  return activations(batch, m, n, k, fmt::format("[{},{}]", k, n), "a3, a2");
}

/// Heads lie between rows and channels, and the sum runs over two axes.
const std::string kTwoSums = R"(region
param input f32[11,3,5,20]
param input f32[5,3,20,37]
param output f32[3,11,37]
stage contraction
  domain [3,11,37]
  reduce [5,20]
  read param 0 at [a1, a0, a3, a4]
  read param 1 at [a3, a0, a4, a2]
  reduction sum mul(r0, r1)
  output param 2 f32[3,11,37] at [a0, a1, a2] = s0
)";

const std::vector<Case> kActivations = {
    wished("straight", straight("3", "21", 33, 40)),
    wished("across", across("3", "21", 33, 40)),
    wished("shared", shared("3", "21", 33, 40)),
    wished("whole_blocks", straight("2", "28", 96, 64)),
    wished("odd", straight("2", "61", 77, 131)),
    wished("odd_across", across("2", "61", 77, 131)),
    wished("many_batches", across("40", "7", 5, 9)),
    wished("one_matrix", straight("1", "300", 130, 96)),
    wished("one_matrix_across", across("1", "300", 130, 96)),
    wished("few_rows", across("2", "4", 50, 35)),
    wished("one_row", straight("5", "1", 50, 35)),
    wished("one_output", straight("2", "9", 1, 35)),
    wished("one_channel", straight("2", "9", 20, 1)),
    wished("two_sums", kTwoSums),
    wished("unbound_rows", straight("2", "m", 50, 35), {{{"m", 1}}, {{"m", 3}}, {{"m", 14}}, {{"m", 41}}, {{"m", 55}}}),
    wished("unbound_linear", gemm_region("n", 100, 64),
           {{{"n", 7}}, {{"n", 14}}, {{"n", 16}}, {{"n", 21}}, {{"n", 27}}, {{"n", 128}}}),
    wished("unbound_batch", across("n", "9", 50, 35), kBatches),
};
OPFUSE_CASES(Activations, kActivations);

const std::vector<Case> kShapes = {
    wished("unbound_image", kUnbound,
           {{{"n", 1}, {"h", 5}, {"w", 40}},
            {{"n", 2}, {"h", 1}, {"w", 1}},
            {{"n", 1}, {"h", 9}, {"w", 15}},
            {{"n", 3}, {"h", 2}, {"w", 2}}}),
    wished("prologue", kPrologue),
    wished("one_dimension", kConv1d),
    {.name = "one_output_of_a_signal", .region = kOneOutput1d, .bindings = kBatches},
    wished("three_dimensions", kConv3d),
};
OPFUSE_CASES(ContractionShapes, kShapes);

TEST(ContractionSchedule, resnet_layers_take_the_register_tile) {
  for (const TargetInfo& target : runnable_targets()) {
    const KernelSpec spec = spec_of(wished("", conv_region({.c = 64, .h = 56, .w = 56, .o = 64})), target);
    const int64_t tile = spec.schedule.get("nv", 0) * spec.schedule.get("tile_w", 0);
    EXPECT_GE(tile, target.vector_registers / 2) << target.name << " " << spec.schedule.text();
  }
}

TEST(ContractionSchedule, lanes_of_several_groups_do_not_narrow_a_tile_that_fits) {
  const Conv v{.c = 4, .h = 13, .w = 16, .o = 104, .group = 4};
  const Schedule s = spec_of(wished("", conv_region(v)), parse_target("cpu:avx512")).schedule;
  EXPECT_EQ(s.get("grouped", 0), 2);
  EXPECT_EQ(s.get("tile_w", 0), 16);
}

TEST(ContractionSchedule, blocks_leave_a_narrower_last_one_only_where_it_pays) {
  const TargetInfo target = parse_target("cpu:avx512");
  const auto vectors = [&](const std::string& region) {
    return spec_of(wished("", region), target).schedule.get("nv", 0);
  };
  EXPECT_NE(5 % vectors(gemm_region("286", 75, 302)), 0);
  EXPECT_EQ(4 % vectors(conv_region({.c = 64, .h = 56, .w = 56, .o = 64})), 0);
  EXPECT_EQ(6 % vectors(conv_region({.c = 64, .h = 56, .w = 56, .o = 96})), 0);
}

TEST(ContractionSchedule, convolutions_with_constant_weights_never_fall_back) {
  const TargetInfo target = parse_target("cpu:avx512");
  for (int group : {1, 2, 4})
    for (int in : {1, 3, 4, 8, 16, 20})
      for (int out : {1, 4, 8, 24, 16, 32})
        for (int k : {1, 3}) {
          const Conv v{
              .c = in * group, .h = 9, .w = 9, .o = out * group, .kh = k, .kw = k, .pad = k / 2, .group = group};
          const KernelSpec spec = spec_of(wished("", conv_region(v)), target);
          const bool scales = group > 1 && in == 1 && out == 1 && k == 1;  // a factor for each channel: a map by choice
          EXPECT_EQ(spec.schedule.get("generic", 0) != 0, scales)
              << in << " -> " << out << " x " << group << " k " << k;
        }
}

TEST(ContractionSchedule, activations_are_packed_where_rows_share_them) {
  const auto packs = [](const std::string& region, const char* target) {
    return spec_of(wished("", region), parse_target(target)).schedule.get("pack", 0) != 0;
  };
  for (const char* target : {"cpu:avx512", "cpu:avx2", "cpu:baseline"}) {
    for (const std::string& region : {straight("3", "21", 33, 40), across("3", "21", 33, 40), shared("3", "21", 33, 40),
                                      straight("1", "4", 77, 131), straight("2", "m", 50, 35), kTwoSums})
      EXPECT_TRUE(packs(region, target)) << region;
    EXPECT_FALSE(packs(straight("5", "1", 50, 35), target));
    EXPECT_FALSE(packs(gemm_region("37", 130, 70), target));
    EXPECT_FALSE(packs(conv_region({.c = 32, .h = 14, .w = 14, .o = 64}), target));
  }
}

/// Half of the rows of a Transformer's Linear stay in L2 beside two blocks of weights: no passes over channels.
TEST(ContractionSchedule, long_chunks_of_rows_go_before_passes) {
  TargetInfo target = parse_target("cpu:avx512");
  target.l2_bytes = 1 << 20;
  const Schedule linear = spec_of(wished("", gemm_region("197", 3072, 768)), target).schedule;
  EXPECT_EQ(linear.get("k_block", 0), 0) << linear.text();
  EXPECT_EQ(linear.get("chunk", 0), 11) << linear.text();
  const Schedule deep = spec_of(wished("", gemm_region("197", 768, 3072)), target).schedule;
  EXPECT_GT(deep.get("k_block", 0), 0) << deep.text();
}

/// A part with one block of weights has no chunks: all its rows share the fetching of the next part's block.
TEST(ContractionSchedule, one_block_is_fetched_ahead_by_all_rows) {
  TargetInfo target = parse_target("cpu:avx512");
  target.l2_bytes = 1 << 20;
  int found = 0;
  for (const int rows : {84, 132, 196, 204, 256})
    for (const int outputs : {256, 512, 768}) {
      const Schedule s = spec_of(wished("", gemm_region(std::to_string(rows), outputs, 3072)), target).schedule;
      if (s.get("parts_o", 0) * s.get("nv", 0) * 16 < outputs || s.get("nv", 0) > 2) continue;  // two do not fit
      EXPECT_GT(s.get("chunk", 0), 1) << s.text();
      EXPECT_GT(s.get("prefetch", 0), 0) << s.text();
      ++found;
    }
  EXPECT_GT(found, 0);
}

/// Caches so small that small layers behave as large ones do.
class SmallCaches : public testing::TestWithParam<TargetInfo> {
 protected:
  static TargetInfo target(int64_t l2_bytes) {
    TargetInfo t = GetParam();
    t.l2_bytes = l2_bytes;
    return t;
  }
  static Schedule check(const Conv& v, const TargetInfo& target) {
    const Case c = wished("small", conv_region(v));
    const KernelSpec spec = spec_of(c, target);
    check_spec(c, spec, target);
    return spec.schedule;
  }
};

/// The smallest cache with which the weights of `v` come in passes, 0: none.
int64_t cache_with_passes(const Conv& v, const std::function<TargetInfo(int64_t)>& target) {
  for (int64_t l2 = 4 << 10; l2 <= 512 << 10; l2 += l2 / 2)
    if (spec_of(wished("", conv_region(v)), target(l2)).schedule.get("k_block", 0)) return l2;
  return 0;
}

TEST_P(SmallCaches, WeightsComeInPasses) {
  int found = 0;
  for (const int channels : {64, 112})
    for (const int extent : {5, 7, 14}) {
      const Conv v{.n = "2", .c = channels, .h = extent, .w = extent, .o = 67, .residual = true};
      EXPECT_EQ(spec_of(wished("", conv_region(v)), target(64 << 20)).schedule.get("k_block", 0), 0);
      const int64_t l2 = cache_with_passes(v, target);
      if (l2 == 0) continue;  // a part has one tile only
      const Schedule s = check(v, target(l2));
      EXPECT_LT(s.get("k_block", 0), channels) << s.text();
      ++found;
    }
  EXPECT_GE(found, 2);
}

/// Several blocks of weights and several chunks of tiles in a part: the accumulators of each rest in a place of their
/// own.
TEST_P(SmallCaches, PassesOverSeveralBlocks) {
  for (const int64_t chunk : {1, 2, 100}) {
    const Conv v{.n = "1", .c = 160, .h = 1, .w = 61, .o = 131, .kh = 1, .kw = 1, .pad = 0, .residual = true};
    const Case c = wished("several_blocks", conv_region(v));
    KernelSpec spec = spec_of(c, GetParam());
    spec.schedule.set("parts_o", 1);
    spec.schedule.set("parts_p", 1);
    spec.schedule.set("chunk", chunk);
    spec.schedule.set("k_block", 64);
    spec.schedule.set("prefetch", 2);
    check_spec(c, spec, GetParam());
  }
}

/// Both orders of parts; the pieces of rows are outside where the weights are read by every worker cheaply.
TEST_P(SmallCaches, PartsOfRowsComeFirstWhereWeightsAreSmall) {
  const Conv v{.n = "2", .c = 48, .h = 14, .w = 14, .o = 131, .kh = 1, .kw = 1, .pad = 0};
  const Case c = wished("parts", conv_region(v));
  for (const bool rows_first : {false, true}) {
    KernelSpec spec = spec_of(c, GetParam());
    spec.schedule.set("parts_o", 2);
    spec.schedule.set("parts_p", 3);
    if (rows_first) spec.schedule.set("rows_first", 1);
    check_spec(c, spec, GetParam());
  }
  const auto order = [&](int channels, int outputs) {
    return spec_of(wished("", conv_region({.c = channels, .h = 14, .w = 14, .o = outputs, .kh = 1, .kw = 1, .pad = 0})),
                   parse_target("cpu:avx512"))
        .schedule;
  };
  EXPECT_EQ(order(64, 384).get("rows_first", 0), 1) << order(64, 384).text();
  EXPECT_EQ(order(672, 384).get("rows_first", 0), 0) << order(672, 384).text();
  EXPECT_GT(order(672, 384).get("parts_o", 0), 1);
  EXPECT_GT(order(672, 384).get("parts_p", 0), 1);
}

/// Passes are an image's, so they are the same when the number of images is open.
TEST_P(SmallCaches, AnOpenBatchHasThePassesOfOneImage) {
  int found = 0;
  for (const int channels : {64, 112})
    for (const int extent : {5, 7}) {
      Conv v{.c = channels, .h = extent, .w = extent, .o = 67, .residual = true};
      const int64_t l2 = cache_with_passes(v, target);
      if (l2 == 0) continue;  // a part has one tile only
      const int64_t one = spec_of(wished("one", conv_region(v)), target(l2)).schedule.get("k_block", 0);
      v.n = "n";
      const Case open = wished("open", conv_region(v), {{{"n", 1}}, {{"n", 3}}});
      const KernelSpec spec = spec_of(open, target(l2));
      EXPECT_EQ(spec.schedule.get("k_block", 0), one) << spec.schedule.text();
      if (++found == 1) check_spec(open, spec, target(l2));
    }
  EXPECT_GT(found, 0);
}

TEST_P(SmallCaches, OpenRowsHaveNoPasses) {
  Case c = wished("unbound", gemm_region("n", 96, 512), kBatches);
  const KernelSpec spec = spec_of(c, target(16 << 10));
  EXPECT_EQ(spec.schedule.get("k_block", 0), 0) << "how much scratch accumulators need is not known";
  check_spec(c, spec, target(16 << 10));
}

/// A part takes all images where its weights stay in L2, be their number known or not.
TEST_P(SmallCaches, PartsKeepTheirWeightsForAnOpenNumberOfImages) {
  for (const char* n : {"n", "3"}) {
    Case c = wished("images", conv_region({.n = n, .c = 64, .h = 7, .w = 7, .o = 256}));
    if (n[0] == 'n') c.bindings = {{{"n", 1}}, {{"n", 3}}};
    const KernelSpec spec = spec_of(c, target(96 << 10));
    EXPECT_EQ(spec.schedule.get("parts_batch", 0), 1) << n << ": " << spec.schedule.text();
    check_spec(c, spec, target(96 << 10));
  }
}

TEST_P(SmallCaches, ActivationsBeyondL2AreFetchedAhead) {
  const Conv v{.c = 32, .h = 13, .w = 13, .o = 28, .kh = 1, .kw = 1, .pad = 0, .residual = true};
  const Schedule s = check(v, target(32 << 10));
  EXPECT_EQ(s.get("fetch_data", 0), 2) << "also those of the next tile: " << s.text();
  EXPECT_EQ(s.get("fetch_outputs", 0), 1) << s.text();
  Conv many = v;
  many.o = target(32 << 10).lanes_f32() == 16 ? 700 : 300;  // more than a few blocks
  EXPECT_EQ(check(many, target(32 << 10)).get("fetch_data", 0), 1) << "a first pass of many";
  const Schedule near = spec_of(wished("", conv_region(v)), target(64 << 20)).schedule;
  EXPECT_EQ(near.get("fetch_data", 0), 1) << "blocks of channels lie apart: " << near.text();
  EXPECT_EQ(near.get("fetch_outputs", 0), 0) << near.text();
}

INSTANTIATE_TEST_SUITE_P(Kernels, SmallCaches, testing::ValuesIn(runnable_targets()),
                         [](const auto& info) { return case_name({}, info.param); });

}  // namespace
}  // namespace opfuse::test
