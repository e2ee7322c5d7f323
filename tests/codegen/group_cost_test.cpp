// Groups whose price decides whether they are one launch: what a kernel does that its operations alone do not tell.
#include "cpu/group_cost.hpp"

#include <gtest/gtest.h>

namespace opfuse {
namespace {

double work_of(const std::string& region) {
  return group_cost(parse_region(region), parse_target("cpu:avx2"), LayoutGuess::dense).work;
}

std::string pool(const std::string& at) {
  return "region\nparam input f32[32,56,56]\nparam output f32[32,28,28]\nstage window\n  domain [32,28,28]\n"
         "  reduce [2,2]\n  read param 0 at " +
         at + "\n  reduction max r0\n  output param 1 f32[32,28,28] at [a0, a1, a2] = s0\n";
}

const std::string kTurn =
    "region\nparam input f32[32,56,56]\nparam output f32[32,56,56]\nstage map\n  domain [32,56,56]\n"
    "  read param 0 at [a0, a2, a1]\n  output param 1 f32[32,56,56] at [a0, a1, a2] = r0\n";

TEST(GroupCost, TapsOfATransposedMapAreGathered) {
  const double apart = work_of(kTurn) + work_of(pool("[a0, 2*a1 + a3, 2*a2 + a4]"));
  EXPECT_GT(work_of(pool("[a0, 2*a2 + a4, 2*a1 + a3]")), apart);
}

std::string means(const std::string& result) {
  return "region\nparam input f32[256,64]\nparam output f32[256]\nstage row\n  domain [256]\n  reduce [64]\n"
         "  read param 0 at [a0, a1]\n  reduction sum r0\n  output param 1 f32[256] at [a0] = " +
         result + "\n";
}

/// exp(x) / sum(exp(x)) and what follows it.
std::string softmax(int columns, const std::string& result) {
  const std::string type = "f32[512," + std::to_string(columns) + "]";
  return "region\nparam input " + type + "\nparam output " + type + "\nstage row\n  domain [512," +
         std::to_string(columns) + "]\n  reduce [" + std::to_string(columns) +
         "]\n  read param 0 at [a0, a2]\n  read param 0 at [a0, a1]\n  reduction sum exp(r0)\n  output param 1 " +
         type + " at [a0, a1] = " + result + "\n";
}

double functions_behind_rows(int columns) {
  const std::string quotient = "div(exp(r1), s0)";
  return work_of(softmax(columns, "tanh(" + quotient + ")")) - work_of(softmax(columns, quotient));
}

double functions_of_a_map(int columns) {
  const std::string type = "f32[" + std::to_string(512 * columns) + "]";
  return work_of("region\nparam input " + type + "\nparam output " + type + "\nstage map\n  domain [" +
                 std::to_string(512 * columns) + "]\n  read param 0 at [a0]\n  output param 1 " + type +
                 " at [a0] = tanh(r0)\n");
}

TEST(GroupCost, FunctionsOfShortRowsWaitForOneAnother) {
  EXPECT_GT(functions_behind_rows(16), 1.4 * functions_of_a_map(16));
  EXPECT_LT(functions_behind_rows(512), 1.1 * functions_of_a_map(512));
}

TEST(GroupCost, WhatARowsResultNeedsIsComputedForEachRow) {
  EXPECT_GE(work_of(means("tanh(s0)")) - work_of(means("s0")), 256 / 8 * 10);
}

std::string scaled_rows(const std::string& factor) {
  return "region\nparam input f32[256,64]\nparam output f32[256,64]\nstage row\n  domain [256,64]\n  reduce [64]\n"
         "  read param 0 at [a0, a2]\n  read param 0 at [a0, a1]\n  reduction sum r0\n"
         "  output param 1 f32[256,64] at [a0, a1] = mul(r1, " +
         factor + ")\n";
}

/// exp(x + y), summed and centred along rows; the first result is the sum of both, where it is `stored`.
std::string centred_sum(bool stored) {
  const std::string type = "f32[256,512]", sum = "  output param 2 " + type + " at [a0, a1] = add(r2, r3)\n";
  return "region\nparam input " + type + "\nparam input " + type + "\nparam output " + type +
         (stored ? "\nparam output " + type : "") +
         "\nstage row\n  domain [256,512]\n  reduce [512]\n  read param 0 at [a0, a2]\n  read param 1 at [a0, a2]\n"
         "  read param 0 at [a0, a1]\n  read param 1 at [a0, a1]\n  reduction sum add(r0, r1)\n"
         "  reduction sum abs(sub(add(r0, r1), s0))\n" +
         (stored ? sum : "") + "  output param " + (stored ? "3 " : "2 ") + type +
         " at [a0, a1] = mul(sub(add(r2, r3), s0), s1)\n";
}

/// A result that the first pass stores is read by the next ones: one operand instead of two, and nothing added up.
TEST(GroupCost, WhatTheFirstPassStoresIsNotComputedAgain) {
  const double more = work_of(centred_sum(true)) - work_of(centred_sum(false)), vectors = 256 * 512 / 8;
  EXPECT_LT(more, 0) << "storing it costs less than two passes save";
  EXPECT_GT(more, -2 * vectors);
}

TEST(GroupCost, WhatIsTheSameAlongARowIsComputedOncePerRow) {
  const double more = work_of(scaled_rows("tanh(s0)")) - work_of(scaled_rows("s0"));
  EXPECT_GE(more, 256 * 5) << "a row at a time";
  EXPECT_LT(more, 256 * 64 / 8 * 5) << "not for every vector of it";
}

}  // namespace
}  // namespace opfuse
