// Depthwise convolutions, pooling, and convolution with pooling in one kernel.
#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

const std::vector<SymbolValues> kBatches = {{{"n", 1}}, {{"n", 2}}, {{"n", 3}}, {{"n", 17}}};

Case wished(std::string name, std::string region, std::vector<SymbolValues> bindings = {{}}) {
  Case c;
  c.name = std::move(name);
  c.region = std::move(region);
  c.wished = true;
  c.bindings = std::move(bindings);
  return c;
}

std::string unbound_pool() {
  std::string text = pool_region({.n = "n", .c = 20, .h = 11, .w = 11, .stride = 2}, "max");
  const auto put = [&](const std::string& from, const std::string& to) {
    for (size_t at; (at = text.find(from)) != std::string::npos;) text.replace(at, from.size(), to);
  };
  put("11,11]", "2*h + 1,2*w + 1]");
  put("6,6]", "h + 1,w + 1]");
  return text;
}

const std::vector<Case> kCases = {
    wished("depthwise_3x3", conv_region({.c = 32, .h = 14, .w = 14, .o = 32, .group = 32})),
    wished("depthwise_odd_channels", conv_region({.c = 37, .h = 9, .w = 31, .o = 37, .group = 37})),
    wished("depthwise_stride_2", conv_region({.c = 24, .h = 15, .w = 17, .o = 24, .stride = 2, .group = 24})),
    wished("depthwise_5x5", conv_region({.c = 16, .h = 7, .w = 7, .o = 16, .kh = 5, .kw = 5, .pad = 2, .group = 16})),
    wished("depthwise_9x9", conv_region({.c = 16, .h = 12, .w = 30, .o = 16, .kh = 9, .kw = 9, .pad = 4, .group = 16})),
    wished("depthwise_dilated", conv_region({.c = 16, .h = 9, .w = 21, .o = 16, .pad = 2, .dilation = 2, .group = 16})),
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
  EXPECT_THAT(cannot_generate(region, host_target()).value_or(""), testing::HasSubstr("two stages"));
}

}  // namespace
}  // namespace opfuse::test
