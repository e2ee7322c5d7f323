// What a guard costs in front of elements that no instruction loads under a mask.
#include <gtest/gtest.h>

#include "cpu/group_cost.hpp"

namespace opfuse {
namespace {

double work_of_guarded(const std::string& type, const std::string& condition, const std::string& target) {
  const std::string region =
      "region\nparam input f32[64,256]\nparam input " + type +
      "[16,100]\nparam output f32[64,256]\nstage map\n  domain [64,256]\n  read param 0 at [a0, "
      "a1]\n  read param 1 at [a0 + -20, a1 + -30]\n  output param 2 f32[64,256] at [a0, a1] = " +
      "select(in1, " + condition + ", r0)\n";
  return group_cost(parse_region(region), parse_target(target), LayoutGuess::dense).work;
}

TEST(GuardedBytes, AreLoadedLaneByLane) {
  const auto bytes = [](const char* target) { return work_of_guarded("bool", "select(r1:bool, r0, 1)", target); };
  const auto floats = [](const char* target) { return work_of_guarded("f32", "max(r1, r0)", target); };
  EXPECT_GT(bytes("cpu:avx2"), 2 * floats("cpu:avx2"));
  EXPECT_LT(bytes("cpu:avx512"), 1.5 * floats("cpu:avx512"));
}

}  // namespace
}  // namespace opfuse
