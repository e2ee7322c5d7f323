// Shifted windows: rolls, partition, attention, reversal, rolls back; and everything that keeps them apart.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "match/pattern.hpp"
#include "passes/passes.hpp"
#include "testing/corners.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

struct Windows {
  int shift = 1, back = 3;  ///< of 4: rolled by `shift`, back by 4 - `back`
  int window = 2;           ///< of the reversal
  std::string attention = "%y0 = matmul(%p, %v)";
  std::string reader;  ///< of the rolled value
};

/// x[1,4,4,8] in windows of 2x2 with one head.
std::string text(const Windows& w) {
  std::string s = R"(graph (%x: f32[1,4,4,8]) {
  %w = const rand<1> : f32[8,24] %o = const rand<2> : f32[8,8] %bias = const rand<3> : f32[1,4,4] %half = const splat<0.5> : f32[]
  %one = const dense<1> : i64[1] %two = const dense<2> : i64[1] %zero = const dense<0> : i64[1]
  %end = const dense<9223372036854775807> : i64[1] %e = const dense<8> : i64[1] %ee = const dense<16> : i64[1]
  %apart = const dense<1,2,2,2,2,8> : i64[6] %flat = const dense<4,4,8> : i64[3] %map = const dense<1,4,4,8> : i64[4]
)";
  s += fmt::format("  %s = const dense<{}> : i64[1] %b = const dense<{}> : i64[1]\n", w.shift, w.back);
  s += R"(  %a0 = slice(%x, %s, %end, %one) %a1 = slice(%x, %zero, %s, %one) %a = concat(%a0, %a1) {axis = 1}
  %c0 = slice(%a, %s, %end, %two) %c1 = slice(%a, %zero, %s, %two) %c = concat(%c0, %c1) {axis = 2}
  %p0 = reshape(%c, %apart) %p1 = transpose(%p0) {perm = [0,1,3,2,4,5]} %t = reshape(%p1, %flat)
  %m = matmul(%t, %w) %q0 = slice(%m, %zero, %e, %two) %k0 = slice(%m, %e, %ee, %two) %v = slice(%m, %ee, %end, %two)
  %q = mul(%q0, %half) %k = transpose(%k0) {perm = [0,2,1]} %d = matmul(%q, %k) %z = add(%d, %bias) %p = softmax(%z)
)";
  s += "  " + w.attention + " %l = matmul(%y0, %o)\n";
  s += fmt::format("  %apart2 = const dense<1,{0},{0},{1},{1},8> : i64[6]\n", 4 / w.window, w.window);
  s += R"(  %r0 = reshape(%l, %apart2) %r1 = transpose(%r0) {perm = [0,1,3,2,4,5]} %r = reshape(%r1, %map)
  %f0 = slice(%r, %b, %end, %one) %f1 = slice(%r, %zero, %b, %one) %f = concat(%f0, %f1) {axis = 1}
  %g0 = slice(%f, %b, %end, %two) %g1 = slice(%f, %zero, %b, %two) %g = concat(%g0, %g1) {axis = 2}
)";
  return s + (w.reader.empty() ? "  return %g }" : "  " + w.reader + " return %g, %extra }");
}

struct Result {
  std::string reason;
  std::map<std::string, int> composites;
};

Result convert(const Windows& w) {
  const Graph original = parse_graph(text(w), ops());
  Graph graph = original.clone();
  RewriteReport report;
  run_passes(graph, recompose_passes(), {.report = &report});
  verify(graph);
  testing::expect_same_on_corners(original, graph);
  Result result;
  for (const RewriteNote& n : report.notes)
    if (n.rule == "ShiftedWindowAttention") result.reason = n.applied ? "applied: " + n.reason.message : n.reason.code;
  for (const Node* node : graph.nodes())
    if (node->body) ++result.composites[node->label];
  return result;
}

TEST(ShiftedWindows, RollsJoinThePartitionAndTheReversal) {
  const Result r = convert({});
  EXPECT_EQ(r.reason, "applied: windows shifted: axis 1 by 1, axis 2 by 1");
  EXPECT_EQ(r.composites,
            (std::map<std::string, int>{
                {"swin_window_partition", 1}, {"swin_window_reverse", 1}, {"mha_in_projection", 1}, {"attention", 1}}));
}

TEST(ShiftedWindows, StayApartWhereTheyDoNotBelongTogether) {
  EXPECT_EQ(convert({.back = 2}).reason, "shift_mismatch");
  EXPECT_EQ(convert({.window = 4}).reason, "window_mismatch");
  EXPECT_EQ(convert({.attention = "%y1 = matmul(%p, %v) %y0 = exp(%y1)"}).reason, "no_attention");
  const Result read = convert({.reader = "%extra = relu(%c)"});
  EXPECT_EQ(read.reason, "shift_mismatch");  // the rolled value is read elsewhere, so it stays a value
  EXPECT_EQ(read.composites.at("roll"), 4);
}

TEST(ShiftedWindows, SlicesThatDoNotChangePlacesAreNoRoll) {
  const auto rolls = [](const char* first, const char* second, int axis) {
    Graph graph = parse_graph(
        fmt::format("graph (%x: f32[2,6]) {{ %i = const dense<2> : i64[1] %j = const dense<3> : i64[1] %z = const "
                    "dense<0> : i64[1] %n = const dense<6> : i64[1] %one = const dense<1> : i64[1] %a = slice(%x, {}) "
                    "%b = slice(%x, {}) %y = concat(%a, %b) {{axis = {}}} return %y }}",
                    first, second, axis),
        ops());
    recompose_movement()(graph);
    return operator_name(*graph.outputs()[0]->producer) == "roll";
  };
  EXPECT_TRUE(rolls("%i, %n, %one", "%z, %i, %one", 1));
  EXPECT_FALSE(rolls("%i, %n, %one", "%z, %j, %one", 1));  // an overlap
  EXPECT_FALSE(rolls("%z, %i, %one", "%i, %n, %one", 1));  // in their own places
  EXPECT_FALSE(rolls("%j, %n, %one", "%z, %j, %one", 0));  // beside each other along another axis
}

}  // namespace
}  // namespace opfuse
