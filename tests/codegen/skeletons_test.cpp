// The table of skeletons: what each region is, and that everything in it can be emitted.
#include "cpu/skeletons.hpp"

#include <set>

#include "codegen/chain_regions.hpp"
#include "codegen/run_kernel.hpp"
#include "opfuse/error.hpp"

namespace opfuse::test {
namespace {

const TargetInfo kTarget = parse_target("cpu:avx512");

TEST(Skeletons, are_those_that_are_emitted) {
  std::set<std::string> described, emitted;
  for (const Skeleton& skeleton : skeletons()) described.emplace(skeleton.name);
  for (const std::string& name : emitter_names()) EXPECT_TRUE(emitted.insert(name).second) << name << " twice";
  EXPECT_EQ(described, emitted);
}

std::string map_text(const std::string& n) {
  const std::string type = "f32[" + n + "]";
  return "region\nparam input " + type + "\nparam output " + type + "\nstage map\n  domain [" + n +
         "]\n  read param 0 at [a0]\n  output param 1 " + type + " at [a0] = exp(r0)\n";
}

TEST(Skeletons, are_seen_in_the_order_of_the_table) {
  const struct {
    std::string skeleton, region;
  } cases[] = {
      {"contraction", conv_region({})},
      {"contraction", gemm_region("17", 64, 32)},
      {"pixels", conv_region({.c = 64, .h = 56, .w = 56, .o = 1})},
      {"window", conv_region({.c = 32, .o = 32, .group = 32})},
      {"window", pool_region({.c = 32, .pad = 0}, "max")},
      {"chain", chain_region({})},
      {"generic", map_text("100")},
      {"generic", conv_region({.n = "0"})},  // nothing to cut into tiles
  };
  for (const auto& c : cases) {
    EXPECT_EQ(spec_of(wished("", c.region), kTarget).schedule.skeleton, c.skeleton) << c.region;
  }
}

TEST(Skeletons, layouts_choose_among_those_that_see_a_region) {
  Case dense;
  dense.region = conv_region({});
  EXPECT_EQ(spec_of(dense, kTarget).schedule.skeleton, "pixels") << "weights whose channels lie apart";
  dense.region = gemm_region("17", 64, 32);
  EXPECT_EQ(spec_of(dense, kTarget).schedule.skeleton, "generic");
  dense.region = conv_region({.c = 32, .o = 32, .group = 32});
  EXPECT_EQ(spec_of(dense, kTarget).schedule.skeleton, "generic") << "a few taps of rows that need no packing";
  dense.region = conv_region({.c = 32, .o = 32, .kh = 5, .kw = 5, .pad = 2, .group = 32});
  EXPECT_EQ(spec_of(dense, kTarget).schedule.skeleton, "pixels");
}

/// 1-D, 16 channels and 5 taps; weights as the contraction wishes them.
std::string signal_region(int outputs, int stride) {
  const int in = 40 * stride;
  return fmt::format(
      "region\nparam input f32[1,16,{0}]\nparam constant f32[{1},16,5]\nparam output f32[1,{1},40]\n"
      "stage contraction\n  domain [1,{1},40]\n  reduce [16,5]\n  read param 0 at [a0, a3, {2}*a2 + a4 + -2]\n"
      "  read param 1 at [a1, a3, a4]\n  reduction sum mul(select(in0, r0, 0), r1)\n"
      "  output param 2 f32[1,{1},40] at [a0, a1, a2] = s0\n",
      in, outputs, stride);
}

TEST(Skeletons, one_output_of_dense_signals_has_pixels_in_the_lanes) {
  const auto skeleton_of = [](const std::string& region, const std::vector<std::string>& layouts) {
    Case c;
    c.region = region;
    c.layouts = layouts;
    return spec_of(c, kTarget).schedule.skeleton;
  };
  const std::vector<std::string> blocked = {"", "012/1:16,0:16", ""};
  EXPECT_EQ(skeleton_of(signal_region(1, 1), blocked), "generic");
  EXPECT_EQ(skeleton_of(signal_region(2, 1), blocked), "contraction") << "each output would read the data again";
  EXPECT_EQ(skeleton_of(signal_region(1, 2), blocked), "contraction") << "lanes would be gathered";
  EXPECT_EQ(skeleton_of(signal_region(1, 1), {"012/1:16", "012/1:16,0:16", ""}), "contraction");
}

TEST(Skeletons, a_schedule_of_no_skeleton_is_refused) {
  KernelSpec spec = spec_of(wished("", conv_region({})), kTarget);
  spec.schedule.skeleton = "spiral";
  try {
    generate({spec}, kTarget, {});
    FAIL() << "generated";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("spiral"));
  }
}

}  // namespace
}  // namespace opfuse::test
