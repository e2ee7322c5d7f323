// Contractions that compute the epilogue of a tile between the multiply-adds of the next.
#include "cpu/contraction/overlap.hpp"

#include "codegen/chain_regions.hpp"
#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

const TargetInfo kTarget = parse_target("cpu:avx512");
const std::string kSilu = "div({0}, add(1, exp(neg({0}))))";
const std::string kGelu = "mul(mul({0}, 0.5), add(1, erf(mul({0}, 0.70710678))))";

Conv pointwise(int c, int h, int w, int o, const std::string& activation = kSilu) {
  return {.c = c, .h = h, .w = w, .o = o, .kh = 1, .kw = 1, .pad = 0, .activation = activation};
}

Conv of_batch(Conv v, const std::string& n) {
  v.n = n;
  return v;
}

Conv without_bias(Conv v) {
  v.bias = false;
  return v;
}

Pair pair_of(Conv first, Conv second) { return {.first = std::move(first), .second = std::move(second)}; }

/// Rows of features, gate-like: the bias is added again behind the function.
std::string bias_read_twice() {
  return "region\nparam input f32[56,32]\nparam constant f32[32,48]\nparam constant f32[48]\nparam output f32[56,48]\n"
         "stage contraction\n  domain [56,48]\n  reduce [32]\n  read param 0 at [a0, a2]\n  read param 1 at [a2, a1]\n"
         "  read param 2 at [a1]\n  reduction sum mul(r0, r1)\n"
         "  output param 3 f32[56,48] at [a0, a1] = add(tanh(add(s0, r2)), r2)\n";
}

const std::vector<Case> kOverlapped = {
    wished("one_step", conv_region(pointwise(16, 14, 14, 96))),
    wished("steps", conv_region(pointwise(80, 14, 14, 96))),
    wished("ragged_steps", conv_region(pointwise(40, 28, 28, 240))),
    wished("gelu", conv_region(pointwise(24, 7, 7, 144, kGelu))),
    wished("tanh", conv_region(pointwise(32, 8, 8, 64, "tanh({0})"))),
    wished("sigmoid", conv_region(pointwise(32, 8, 8, 64, "div(1, add(1, exp(neg({0}))))"))),
    wished("without_bias", conv_region(without_bias(pointwise(16, 14, 14, 96)))),
    wished("one_tile", conv_region(pointwise(16, 1, 8, 32))),
    wished("parts_of_pixels", conv_region(pointwise(16, 56, 56, 96))),
    wished("parts_of_channels", conv_region(pointwise(112, 7, 7, 672))),
    wished("images", conv_region(of_batch(pointwise(24, 14, 14, 144), "3"))),
    wished("images_unbound", conv_region(of_batch(pointwise(24, 14, 14, 144), "n")), {{{"n", 1}}, {{"n", 5}}}),
    wished("chain", chain_region(pair_of(pointwise(16, 28, 28, 96), {}))),
    wished("chain_of_bands", chain_region(pair_of(pointwise(16, 112, 112, 96), {.stride = 2}))),
    wished("chain_silu_twice", chain_region(pair_of(pointwise(24, 14, 56, 144), {.activation = kSilu}))),
    wished("bias_read_twice", bias_read_twice()),
};
OPFUSE_CASES(Overlap, kOverlapped);

Schedule schedule_of(const std::string& region, const TargetInfo& target = kTarget) {
  return spec_of(wished("", region), target).schedule;
}

TEST(OverlapSchedule, functions_run_beside_the_products) {
  for (const Case& c : kOverlapped) EXPECT_EQ(schedule_of(c.region).get("overlap", 0), 1) << c.name;
  const Schedule s = schedule_of(conv_region(pointwise(16, 112, 112, 96)));
  EXPECT_EQ(s.get("tile_w", 0) * s.get("nv", 0), 16) << "nine registers are left: " << s.text();
}

TEST(OverlapSchedule, others_follow_their_tile) {
  const auto alone = [](const std::string& why, const std::string& region, const TargetInfo& target = kTarget) {
    EXPECT_EQ(schedule_of(region, target).get("overlap", 0), 0) << why;
  };
  alone("no function", conv_region(pointwise(16, 14, 14, 96, "max({}, 0)")));
  alone("taps", conv_region({.c = 16, .h = 14, .w = 14, .o = 96, .activation = kSilu}));
  alone("few channels", conv_region(pointwise(8, 14, 14, 96)));
  alone("a ragged last vector", conv_region(pointwise(16, 14, 14, 100)));
  alone("many steps: the smaller tile costs more", conv_region(pointwise(1536, 14, 14, 384)));
  alone("16 registers", conv_region(pointwise(16, 14, 14, 96)), parse_target("cpu:avx2"));
  Conv residual = pointwise(16, 14, 14, 96);
  residual.residual = true;  // the first tile would store into it before it is read
  alone("reads what lies at pixels", conv_region(residual));
  alone("open rows", gemm_region("n", 96, 32));
}

/// Sums rest between passes over channels: only the last pass has an epilogue.
TEST(OverlapSchedule, not_beside_passes) {
  TargetInfo target = kTarget;
  target.l2_bytes = 1 << 20;  // whatever the host has: with more, nothing is done in passes
  const auto runnable = runnable_targets();
  const bool runs = std::any_of(runnable.begin(), runnable.end(), [&](const auto& t) { return t.name == target.name; });
  bool passes = false;
  for (const int depth : {1152, 2304, 4608})
    for (const int pixels : {7, 14}) {
      const Case c = wished("passes", conv_region(pointwise(depth, 7, pixels, 384)));
      KernelSpec spec = spec_of(c, target);
      const bool here = spec.schedule.get("k_block", 0) != 0;
      passes |= here;
      EXPECT_FALSE(here && spec.schedule.get("overlap", 0)) << spec.schedule.text();
      if (here && runs) check_spec(c, spec, target);
    }
  EXPECT_TRUE(passes);
}

/// Every number of tiles per part, and parts without any.
TEST(OverlapSchedule, parts_of_any_size) {
  for (const TargetInfo& target : runnable_targets())
    for (const int64_t parts_p : {1, 3, 7, 28})
      for (const int64_t parts_o : {1, 2})
        for (const int64_t chunk : {1, 2, 28}) {
          const Case c = wished("parts", conv_region(pointwise(32, 14, 14, 96)));
          KernelSpec spec = spec_of(c, target);
          spec.schedule.set("parts_p", parts_p);
          spec.schedule.set("parts_o", parts_o);
          spec.schedule.set("chunk", chunk);
          check_spec(c, spec, target);
        }
}

}  // namespace
}  // namespace opfuse::test
