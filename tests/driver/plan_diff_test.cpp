// Two plans by the names of their nodes: what the second lost and gained, whatever the order of nodes.
#include "fusion/explain/plan_diff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compilation.hpp"
#include "opfuse/error.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

using ::testing::HasSubstr;

FusionPlan plan_of(const std::string& text, const PlanRequest& request = {}, Milestone to = Milestone::lowered) {
  CompilationOptions options;
  options.plan = request;
  Compilation c(parse_graph(text, ops()), parse_target("cpu:avx512"), options);
  c.run_to(to);
  return c.plan;
}

std::string two_branches(bool other_order) {
  const std::string first = "%a = relu(%x) @\"a\"\n %b = sigmoid(%a) @\"b\"\n";
  const std::string second = "%c = abs(%z) @\"c\"\n %d = tanh(%c) @\"d\"\n";
  return "graph (%x: f32[64,256], %z: f32[64,256]) {\n" + (other_order ? second + first : first + second) +
         "return %b, %d }";
}

TEST(PlanDiff, FindsWhatIsLostAndWhatIsGained) {
  const FusionPlan fused = plan_of(two_branches(false));
  const FusionPlan apart = plan_of(two_branches(false), {.no_fuse = {{"a", "b"}}});
  const PlanDiff diff = diff_plans(fused, apart);
  ASSERT_EQ(diff.lost.size(), 1u);
  EXPECT_TRUE(diff.gained.empty());
  EXPECT_EQ(diff.alike, 1u);
  EXPECT_EQ(diff.lost[0].producer, "a");
  EXPECT_EQ(diff.lost[0].consumer, "b");
  EXPECT_EQ(diff.lost[0].code, "no_fuse");
  EXPECT_EQ(diff.lost[0].where, "map@b");
  ASSERT_TRUE(diff.lost[0].bytes) << "the price of keeping the two apart";
  EXPECT_EQ(*diff.lost[0].bytes, 2 * 4 * 64 * 256);
  EXPECT_GT(*diff.lost[0].microseconds, 0);
  EXPECT_THAT(diff_text(diff), testing::AllOf(HasSubstr("LOST     \"a\" -> \"b\"   no_fuse"), HasSubstr("1 lost")));
  const PlanDiff back = diff_plans(apart, fused);
  EXPECT_TRUE(back.lost.empty());
  ASSERT_EQ(back.gained.size(), 1u);
  EXPECT_EQ(back.gained[0].consumer, "b");
}

TEST(PlanDiff, DoesNotSeeTheOrderOfNodes) {
  const PlanDiff diff = diff_plans(plan_of(two_branches(false)), plan_of(two_branches(true)));
  EXPECT_TRUE(diff.lost.empty() && diff.gained.empty());
  EXPECT_EQ(diff.alike, 2u);
  EXPECT_EQ(diff.only_in_first + diff.only_in_second, 0u);
}

TEST(PlanDiff, PricesAForcedGroupThatIsLost) {
  const std::string slow =
      "graph (%x: f32[1,64,32,32]) { %w = const rand<1> : f32[256,64,1,1] %a = tanh(%x) @\"act\"\n"
      "%y = conv(%a, %w) @\"conv\" return %y }";
  const PlanDiff diff = diff_plans(plan_of(slow, {.fuse = {{"act", "conv"}}}), plan_of(slow));
  ASSERT_EQ(diff.lost.size(), 1u);
  EXPECT_EQ(diff.lost[0].code, "slower");
  ASSERT_TRUE(diff.lost[0].bytes && diff.lost[0].microseconds);
  EXPECT_GT(*diff.lost[0].bytes, 0);
  EXPECT_LT(*diff.lost[0].microseconds, 0) << "one launch was slower";
  EXPECT_EQ(diff.lost[0].change, "--fuse act conv");
}

TEST(PlanDiff, ComparesGroupsWhereOnePlanKnowsNoProgram) {
  const FusionPlan planned = plan_of(two_branches(false), {}, Milestone::planned);
  const PlanDiff diff = diff_plans(planned, plan_of(two_branches(false)));
  EXPECT_TRUE(diff.lost.empty() && diff.gained.empty());
  const std::string views =  // a view is no group
      "graph (%x: f32[1,8,8,8]) { %w = const rand<1> : f32[8,8,3,3] %s = const dense<1,288> : i64[2]\n"
      "%a = conv(%x, %w) @\"conv\" %y = reshape(%a, %s) @\"flat\" return %y }";
  EXPECT_TRUE(diff_plans(plan_of(views), plan_of(views, {}, Milestone::planned)).lost.empty());
}

TEST(PlanDiff, CountsWhatOnlyOneHas) {
  const FusionPlan longer = plan_of(
      "graph (%x: f32[64,256]) { %a = relu(%x) @\"a\" %b = sigmoid(%a) @\"b\" %c = tanh(%b) @\"c\" return %c }");
  const FusionPlan shorter =
      plan_of("graph (%x: f32[64,256]) { %a = relu(%x) @\"a\" %b = sigmoid(%a) @\"b\" return %b }");
  const PlanDiff diff = diff_plans(longer, shorter);
  EXPECT_EQ(diff.only_in_first, 1u);
  EXPECT_EQ(diff.fused_in_first, 1u);
  EXPECT_EQ(diff.alike, 1u);
  const FusionPlan other =
      plan_of("graph (%x: f32[64,256]) { %a = relu(%x) @\"p\" %b = sigmoid(%a) @\"q\" return %b }");
  EXPECT_THROW(diff_plans(longer, other), Error);
}

}  // namespace
}  // namespace opfuse
