// Depthwise convolutions, pooling, and convolution with pooling in one kernel.
#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

const std::vector<SymbolValues> kBatches = {{{"n", 1}}, {{"n", 2}}, {{"n", 3}}, {{"n", 17}}};

std::string unbound_pool() {
  std::string text = pool_region({.n = "n", .c = 20, .h = 11, .w = 11, .stride = 2}, "max");
  const auto put = [&](const std::string& from, const std::string& to) {
    for (size_t at; (at = text.find(from)) != std::string::npos;) text.replace(at, from.size(), to);
  };
  put("11,11]", "2*h + 1,2*w + 1]");
  put("6,6]", "h + 1,w + 1]");
  return text;
}

/// The result with its channels last.
std::string channels_last(const Conv& v) {
  std::string text = conv_region(v);
  const int p = conv_extent(v.h, v.kh, v), q = conv_extent(v.w, v.kw, v);
  const auto put = [&](const std::string& from, const std::string& to) {
    text.replace(text.rfind(from), from.size(), to);
  };
  const std::string first = fmt::format("[{},{},{},{}]", v.n, v.o, p, q),
                    last = fmt::format("[{},{},{},{}]", v.n, p, q, v.o);
  put("[a0, a1, a2, a3] =", "[a0, a2, a3, a1] =");
  put("f32" + first, "f32" + last);
  text.replace(text.find("param output f32" + first), 16 + first.size(), "param output f32" + last);
  return text;
}

/// The same in dense memory.
Case dense_result(std::string name, const Conv& v) {
  Case c = wished(std::move(name), channels_last(v));
  c.layouts.resize(3);
  c.layouts.push_back("0123");
  return c;
}

const Conv kSevens{.c = 37, .h = 9, .w = 11, .o = 37, .kh = 7, .kw = 7, .pad = 3, .group = 37, .activation = "{}"};

const std::vector<Case> kCases = {
    wished("depthwise_channels_last", channels_last(kSevens)),
    dense_result("depthwise_channels_last_dense", kSevens),
    dense_result("depthwise_channels_last_dense_whole", {.c = 32, .h = 6, .w = 9, .o = 32, .group = 32}),
    wished("depthwise_channels_last_unbound", channels_last({.n = "n", .c = 19, .h = 9, .w = 9, .o = 19, .group = 19}),
           kBatches),
    wished(
        "depthwise_silu",
        conv_region({.c = 37, .h = 9, .w = 15, .o = 37, .group = 37, .activation = "div({0}, add(1, exp(neg({0}))))"})),
    wished("depthwise_one_row_padded",
           conv_region({.h = 20, .w = 17, .kh = 1, .kw = 4, .stride = 3, .pad = 2, .group = 16})),
    wished("depthwise_one_column_padded",
           conv_region({.h = 20, .w = 17, .kh = 4, .kw = 1, .stride = 3, .pad = 2, .group = 16})),
    wished("max_pool_one_tap_padded", pool_region({.c = 16, .h = 9, .w = 9, .kh = 1, .kw = 1, .stride = 2}, "max")),
    wished("depthwise_3x3", conv_region({.c = 32, .h = 14, .w = 14, .o = 32, .group = 32})),
    wished("depthwise_odd_channels", conv_region({.c = 37, .h = 9, .w = 31, .o = 37, .group = 37})),
    wished("depthwise_stride_2", conv_region({.c = 24, .h = 15, .w = 17, .o = 24, .stride = 2, .group = 24})),
    wished("depthwise_5x5", conv_region({.c = 16, .h = 7, .w = 7, .o = 16, .kh = 5, .kw = 5, .pad = 2, .group = 16})),
    wished("depthwise_9x9", conv_region({.c = 16, .h = 12, .w = 30, .o = 16, .kh = 9, .kw = 9, .pad = 4, .group = 16})),
    wished("depthwise_dilated", conv_region({.c = 16, .h = 9, .w = 21, .o = 16, .pad = 2, .dilation = 2, .group = 16})),
    wished(
        "depthwise_9x9_dilated_stride_2",
        conv_region(
            {.c = 16, .h = 40, .w = 61, .o = 16, .kh = 9, .kw = 9, .stride = 2, .pad = 8, .dilation = 2, .group = 16})),
    wished("depthwise_7x7_narrow",
           conv_region({.c = 20, .h = 9, .w = 3, .o = 20, .kh = 7, .kw = 7, .pad = 3, .group = 20})),
    wished("depthwise_one_column", conv_region({.c = 16, .h = 9, .w = 1, .o = 16, .group = 16})),
    wished("max_pool_narrow", pool_region({.c = 16, .h = 9, .w = 3}, "max")),
    wished("depthwise_residual",
           conv_region({.c = 19, .h = 9, .w = 9, .o = 19, .group = 19, .residual = true, .activation = "exp({})"})),
    wished("depthwise_unbound", conv_region({.n = "n", .c = 19, .h = 9, .w = 9, .o = 19, .group = 19}), kBatches),
    wished("depthwise_no_padding", conv_region({.c = 16, .h = 9, .w = 20, .o = 16, .pad = 0, .group = 16})),
    wished("max_pool_3x3_stride_2", pool_region({.c = 32, .h = 15, .w = 29, .stride = 2}, "max")),
    wished("max_pool_2x2", pool_region({.c = 19, .h = 10, .w = 10, .kh = 2, .kw = 2, .stride = 2, .pad = 0}, "max")),
    wished("sum_pool_padded", pool_region({.c = 16, .h = 9, .w = 9, .stride = 1}, "sum")),
    wished("min_pool", pool_region({.c = 16, .h = 9, .w = 9, .stride = 2, .pad = 0}, "min")),
    wished("max_pool_unbound", pool_region({.n = "n", .c = 20, .h = 11, .w = 11, .stride = 2}, "max"), kBatches),
    wished("max_pool_unbound_image", unbound_pool(),
           {{{"n", 1}, {"h", 5}, {"w", 40}}, {{"n", 2}, {"h", 1}, {"w", 1}}, {{"n", 1}, {"h", 3}, {"w", 17}}}),
};
OPFUSE_CASES(Window, kCases);

TEST(WindowSchedule, a_row_of_data_stays_in_registers_where_it_can) {
  const TargetInfo target = parse_target("cpu:avx512");
  const auto width = [&](const Conv& v) {
    return spec_of(wished("", conv_region(v)), target).schedule.get("tile_w", 0);
  };
  const Conv wide{.c = 16, .h = 56, .w = 400, .o = 16, .kh = 7, .kw = 7, .pad = 3, .group = 16};
  EXPECT_LE(2 * width(wide) + 7, target.vector_registers);
  Conv spread = wide;  // a row of these would leave three pixels: sums fill half of the registers instead
  spread.stride = 2, spread.dilation = 3, spread.pad = 9;
  EXPECT_EQ(width(spread), target.vector_registers / 2);
}

TEST(WindowSchedule, stores_vectors_of_channels_into_dense_images_whose_channels_are_last) {
  const TargetInfo target = parse_target("cpu:avx512");
  EXPECT_GT(spec_of(dense_result("", kSevens), target).schedule.get("tile_w", 0), 0);
  Case first = wished("", conv_region(kSevens));  // channels a map apart
  first.layouts = {"", "", "", "0123"};
  EXPECT_EQ(spec_of(first, target).schedule.get("tile_w", 0), 0);
}

TEST(WindowSchedule, images_of_a_batch_are_parts) {
  const TargetInfo target = parse_target("cpu:avx512");
  const auto parts = [&](const std::string& n) {
    const Schedule s =
        spec_of(wished("", conv_region({.n = n, .c = 64, .h = 28, .w = 28, .o = 64, .group = 64})), target).schedule;
    return s.get("parts_o", 0) * s.get("parts_p", 0);
  };
  EXPECT_EQ(parts("4"), 1);
  EXPECT_EQ(parts("1") % 2, 0);
  EXPECT_EQ(parts("3") % 2, 0);
}

TEST(WindowSchedule, images_of_a_batch_keep_their_rows_together) {
  const TargetInfo target = parse_target("cpu:avx512");
  const auto schedule = [&](const std::string& n) {
    return spec_of(
               wished("",
                      conv_region(
                          {.n = n, .c = 384, .h = 14, .w = 14, .o = 384, .kh = 7, .kw = 7, .pad = 3, .group = 384})),
               target)
        .schedule;
  };
  for (const char* n : {"2", "3", "8"}) EXPECT_EQ(schedule(n).get("parts_p", 0), 1) << schedule(n).text();
  EXPECT_EQ(schedule("8").get("parts_o", 0), 2) << schedule("8").text();
  EXPECT_GT(schedule("1").get("parts_p", 0), 1);
}

TEST(WindowSchedule, few_rows_are_not_cut_one_by_one) {
  const TargetInfo target = parse_target("cpu:avx512");
  const Conv v{.c = 879, .h = 6, .w = 10, .o = 879, .kh = 7, .kw = 7, .pad = 3, .group = 879};
  EXPECT_LE(spec_of(wished("", conv_region(v)), target).schedule.get("parts_p", 0), 2);
}

std::string stem(const std::string& n, int c, int h, int w, int o, int pool_pad) {
  const int p = (h + 6 - 7) / 2 + 1, q = (w + 6 - 7) / 2 + 1;
  const int pp = (p + 2 * pool_pad - 3) / 2 + 1, pq = (q + 2 * pool_pad - 3) / 2 + 1;
  return fmt::format(R"(region
param input f32[{n},{c},{h},{w}]
param constant f32[{o},{c},7,7]
param constant f32[{o}]
param output f32[{n},{o},{pp},{pq}]
stage contraction
  domain [{n},{o},{p},{q}]
  reduce [{c},7,7]
  read param 0 at [a0, a4, 2*a2 + a5 + -3, 2*a3 + a6 + -3]
  read param 1 at [a1, a4, a5, a6]
  read param 2 at [a1]
  reduction sum mul(select(in0, r0, 0), r1)
  output local f32[{n},{o},{p},{q}] at [a0, a1, a2, a3] = max(add(s0, r2), 0)
stage window
  domain [{n},{o},{pp},{pq}]
  reduce [3,3]
  read stage 0.0 at [a0, a1, 2*a2 + a4 + {off}, 2*a3 + a5 + {off}]
  reduction max {value}
  output param 3 f32[{n},{o},{pp},{pq}] at [a0, a1, a2, a3] = s0
)",
                     fmt::arg("n", n), fmt::arg("c", c), fmt::arg("h", h), fmt::arg("w", w), fmt::arg("o", o),
                     fmt::arg("p", p), fmt::arg("q", q), fmt::arg("pp", pp), fmt::arg("pq", pq),
                     fmt::arg("off", -pool_pad), fmt::arg("value", pool_pad ? "select(in0, r0, -inf)" : "r0"));
}

const std::vector<Case> kStems = {
    wished("stem", stem("1", 3, 38, 34, 32, 1)),
    wished("stem_64", stem("1", 3, 64, 64, 64, 1)),
    wished("stem_without_pool_padding", stem("1", 3, 30, 34, 20, 0)),
    wished("stem_unbound", stem("n", 3, 22, 22, 16, 1), kBatches),
    wished("stem_many_channels", stem("2", 19, 20, 22, 37, 1)),
};
OPFUSE_CASES(Stem, kStems);

TEST(StageSequences, other_than_convolution_and_pooling_are_declined_with_a_reason) {
  std::string text = stem("1", 3, 38, 34, 32, 1);
  Region region = parse_region(text);
  region.stages[1].anchor = Anchor::map;
  EXPECT_THAT(cannot_generate(region, host_target()).value_or(""),
              testing::HasSubstr("a contraction loop nest and a map one behind it have no kernel"));
}

}  // namespace
}  // namespace opfuse::test
