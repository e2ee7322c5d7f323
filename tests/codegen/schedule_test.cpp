// Schedules: as text, verified, and as lists of candidates of which every one computes the same.
#include <set>

#include "codegen/chain_regions.hpp"
#include "codegen/elementary.hpp"
#include "codegen/run_kernel.hpp"
#include "cpu/skeletons.hpp"
#include "opfuse/error.hpp"

namespace opfuse::test {
namespace {

const TargetInfo kTarget = parse_target("cpu:avx512");
constexpr size_t kMost = 4;

const std::vector<Case> kCases = {
    wished("convolution", conv_region({.c = 32, .h = 9, .w = 13, .o = 48})),
    wished("product", gemm_region("37", 80, 64)),
    wished("overlapped", conv_region({.c = 32,
                                      .h = 8,
                                      .w = 8,
                                      .o = 64,
                                      .kh = 1,
                                      .kw = 1,
                                      .pad = 0,
                                      .activation = "div({0}, add(1, exp(neg({0}))))"})),
    wished("depthwise", conv_region({.c = 32, .h = 9, .w = 21, .o = 32, .group = 32})),
    wished("pixels", conv_region({.c = 64, .h = 23, .w = 19, .o = 1})),
    wished("chain", chain_region(sized(16, 14, 14, 48))),
    wished("map", elementwise("", "exp(r0)", 100).region),
};

std::vector<Candidate> candidates_of(const KernelSpec& spec, const TargetInfo& target) {
  return candidates(spec.region, spec.layouts, target, kMost);
}

TEST(Candidates, are_ordered_by_time_and_the_first_is_chosen) {
  for (const Case& c : kCases) {
    const KernelSpec spec = spec_of(c, kTarget);
    const std::vector<Candidate> found = candidates_of(spec, kTarget);
    ASSERT_FALSE(found.empty()) << c.name;
    EXPECT_EQ(found[0].choice, spec.schedule) << c.name;
    std::set<std::string> different;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(different.insert(found[i].choice.text()).second) << c.name << ": " << found[i].choice.text();
      EXPECT_LE(found[i ? i - 1 : 0].cycles, found[i].cycles) << c.name;
    }
    EXPECT_EQ(found.size() > 1, c.name != "map") << c.name;
  }
}

class EveryCandidate : public testing::TestWithParam<std::tuple<Case, TargetInfo>> {};
TEST_P(EveryCandidate, computes_what_the_interpreter_does) {
  const auto& [c, target] = GetParam();
  KernelSpec spec = spec_of(c, target);
  for (const Candidate& candidate : candidates_of(spec, target)) {
    spec.schedule = candidate.choice;
    SCOPED_TRACE(spec.schedule.text());
    check_spec(c, spec, target);
  }
}
INSTANTIATE_TEST_SUITE_P(Kernels, EveryCandidate,
                         testing::Combine(testing::ValuesIn(kCases), testing::ValuesIn(runnable_targets())),
                         [](const auto& info) { return case_name(std::get<0>(info.param), std::get<1>(info.param)); });

TEST(ScheduleText, is_read_back) {
  for (const Case& c : kCases) {
    const Schedule schedule = spec_of(c, kTarget).schedule;
    const Schedule read = parse_schedule(schedule.text());
    EXPECT_EQ(read.skeleton, schedule.skeleton);
    EXPECT_EQ(read.text(), schedule.text());
    EXPECT_EQ(read.knobs.size(), schedule.knobs.size());
  }
}

TEST(ScheduleText, says_which_word_is_wrong) {
  const auto problem = [](const char* text) {
    try {
      parse_schedule(text);
      return std::string("read");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(problem("contraction nv=two"), testing::HasSubstr("nv=two"));
  EXPECT_THAT(problem("contraction nv=99999999999999999999"), testing::HasSubstr("nv=9999"));
  EXPECT_THAT(problem("contraction nv"), testing::HasSubstr("'nv'"));
  EXPECT_THAT(problem("contraction =2"), testing::HasSubstr("'=2'"));
  EXPECT_THAT(problem("contraction nv=2 nv=3"), testing::HasSubstr("nv stands twice"));
}

TEST(Schedule, that_is_ill_formed_is_refused_by_the_name_of_the_number) {
  const struct {
    const char *region, *name;
    int64_t value;
    const char* why;
  } cases[] = {
      {"convolution", "tile_w", 0, "tile_w=0 is less than 1"},
      {"convolution", "grouped", 3, "grouped=3 is more than 2"},
      {"convolution", "tile_v", 2, "tile_v is not a number"},
      {"convolution", "nv", 7, "nv=7"},
      {"convolution", "step", 5, "step=5"},
      {"convolution", "pack", 1, "pack=1"},
      {"convolution", "overlap", 1, "overlap=1"},
      {"convolution", "k_block", 17, "k_block=17"},
      {"depthwise", "rows_first", 2, "rows_first=2"},
      {"pixels", "bands", -1, "bands=-1"},
      {"chain", "band", 0, "band=0"},
      {"chain", "nv", 9, "nv=9"},
  };
  for (const auto& c : cases)
    for (const Case& test : kCases) {
      if (test.name != c.region) continue;
      KernelSpec spec = spec_of(test, kTarget);
      spec.schedule.set(c.name, c.value);
      try {
        generate({spec}, kTarget, {});
        ADD_FAILURE() << c.name << " of " << c.region;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr(c.why));
      }
    }
  KernelSpec spec = spec_of(kCases[0], kTarget);
  std::erase_if(spec.schedule.knobs, [](const auto& knob) { return knob.first == "tile_w"; });
  EXPECT_THROW(generate({spec}, kTarget, {}), Error);
}

}  // namespace
}  // namespace opfuse::test
