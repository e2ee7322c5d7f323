// Slices of slices: which become one, which stay, and that values stay equal.
#include <gtest/gtest.h>

#include "passes/passes.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

const testing::Rewrite kMerged = [](Graph& graph) { run_passes(graph, {merge_slices()}); };

/// One axis of `x`, as text: "%name = slice(%x, ...)" with its constants in front.
std::string slice(const std::string& name, const std::string& x, int axis, int64_t start, int64_t end, int64_t step) {
  const auto number = [&](const char* what, int64_t value) {
    return "%" + name + what + " = const dense<" + std::to_string(value) + "> : i64[1]\n ";
  };
  return number("s", start) + number("e", end) + number("a", axis) + number("t", step) + "%" + name + " = slice(%" + x +
         ", %" + name + "s, %" + name + "e, %" + name + "a, %" + name + "t)\n";
}

std::string graph_of(const std::string& type, const std::string& body, const std::string& results) {
  return "graph (%x: " + type + ") {\n" + body + " return " + results + " }";
}

std::string both(const std::string& name, const std::string& starts, const std::string& ends,
                 const std::string& steps) {
  return "%" + name + "s = const dense<" + starts + "> : i64[2]\n %" + name + "e = const dense<" + ends +
         "> : i64[2]\n %" + name + "a = const dense<1,2> : i64[2]\n %" + name + "t = const dense<" + steps +
         "> : i64[2]\n %" + name + " = slice(%x, %" + name + "s, %" + name + "e, %" + name + "a, %" + name + "t)\n";
}

TEST(MergeSlices, PatchesOfAnImage) {
  testing::expect_rewrite(
      kMerged,
      graph_of(
          "f32[1,6,8,3]",
          slice("r", "x", 1, 0, 9223372036854775807, 2) + slice("p", "r", 2, 0, 8, 2) + slice("q", "r", 2, 1, 8, 2),
          "%p, %q"),
      graph_of("f32[1,6,8,3]",
               both("p", "0,0", "9223372036854775807,8", "2,2") + both("q", "0,1", "9223372036854775807,8", "2,2"),
               "%p, %q"));
}

TEST(MergeSlices, OfOpenExtentsAlongTwoAxes) {
  testing::expect_rewrite(kMerged,
                          graph_of("f32[b,h,w,3]", slice("r", "x", 1, 0, 100, 2) + slice("p", "r", 2, 1, 100, 2), "%p"),
                          graph_of("f32[b,h,w,3]", both("p", "0,1", "100,100", "2,2"), "%p"));
}

TEST(MergeSlices, AlongOneAxisForwardsAndBackwards) {
  // 1, 4, 7, 10 of 12; then 10, 4: from 10 in steps of -6
  testing::expect_rewrite(kMerged,
                          graph_of("f32[2,12]", slice("r", "x", 1, 1, 12, 3) + slice("p", "r", 1, -1, -9, -2), "%p"),
                          graph_of("f32[2,12]", slice("p", "x", 1, 10, -14, -6), "%p"));
}

TEST(MergeSlices, ChainsOfThree) {
  testing::expect_rewrite(
      kMerged,
      graph_of("f32[2,24]", slice("r", "x", 1, 1, 24, 2) + slice("p", "r", 1, 1, 12, 2) + slice("q", "p", 1, 1, 6, 2),
               "%q"),
      graph_of("f32[2,24]", slice("q", "x", 1, 7, 31, 8), "%q"));
}

TEST(MergeSlices, NotWhatIsReadOtherwise) {
  const std::string slices = slice("r", "x", 1, 0, 6, 2) + slice("p", "r", 2, 0, 8, 2);
  for (const std::string& kept :
       {graph_of("f32[1,6,8,3]", slices, "%p, %r"), graph_of("f32[1,6,8,3]", slices + "%q = neg(%r)\n", "%p, %q")})
    testing::expect_rewrite(kMerged, kept, kept);
}

TEST(MergeSlices, NotAlongOneOpenAxis) {
  const std::string kept = graph_of("f32[2,n]", slice("r", "x", 1, 1, 100, 2) + slice("p", "r", 1, 1, 100, 2), "%p");
  testing::expect_rewrite(kMerged, kept, kept);
}

/// Both halves of a copy cost nothing as they are.
TEST(MergeSlices, NotWhereAReaderIsOneRangeOfMemory) {
  const std::string kept = graph_of(
      "f32[4,8]", slice("r", "x", 1, 0, 8, 2) + slice("p", "r", 0, 0, 2, 1) + slice("q", "r", 0, 2, 4, 1), "%p, %q");
  testing::expect_rewrite(kMerged, kept, kept);
}

}  // namespace
}  // namespace opfuse
