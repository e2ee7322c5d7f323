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
