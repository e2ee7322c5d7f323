// Windows and copies with borders: the interior of a nest asks no guards and counts no taps.
#include "kernel/interior.hpp"

#include "codegen/hot_loops.hpp"
#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

struct Pool {
  int c = 3, h = 20, w = 70, k = 3, stride = 1, pad = 1, dilation = 1;
  std::string n = "2", dtype = "f32";
};

/// An average of the taps inside: their number is min(max(end - start, 0), k) - min(max(-start, 0), k) along each axis.
std::string average(const Pool& p) {
  const auto out = [&](int size) { return (size + 2 * p.pad - p.dilation * (p.k - 1) - 1) / p.stride + 1; };
  const auto count = [&](int axis, int size) {
    const std::string start = fmt::format("sub(mul(i{}, {}:i64), {}:i64)", axis, p.stride, p.pad);
    return fmt::format("sub(min(max(sub({0}:i64, {1}), 0:i64), {2}:i64), min(max(sub(0:i64, {1}), 0:i64), {2}:i64))",
                       size, start, p.k);
  };
  const auto at = [&](int axis, int tap) {
    return fmt::format("{}*a{} + {}*a{} + {}", p.stride, axis, p.dilation, tap, -p.pad);
  };
  return fmt::format(
      "region\nparam input {10}[{0},{1},{2},{3}]\nparam output {10}[{0},{1},{4},{5}]\nstage window\n"
      "  domain [{0},{1},{4},{5}]\n  reduce [{6},{6}]\n  read param 0 at [a0, a1, {7}, {8}]\n"
      "  reduction sum select(in0, r0{11}, 0{11})\n"
      "  output param 1 {10}[{0},{1},{4},{5}] at [a0, a1, a2, a3] = div(s0{11}, {9})\n",
      p.n, p.c, p.h, p.w, out(p.h), out(p.w), p.k, at(2, 4), at(3, 5),
      fmt::format("cast<{}>(mul({}, {}))", p.dtype, count(2, p.h), count(3, p.w)), p.dtype,
      p.dtype == "f32" ? "" : ":" + p.dtype);
}

/// Taps go the other way than points, so points have to come from the end.
std::string flipped(int w) {
  return fmt::format(
      "region\nparam input f32[3,{0}]\nparam output f32[3,{0}]\nstage window\n  domain [3,{0}]\n  reduce [5]\n"
      "  read param 0 at [a0, -1*a1 + a2 + {1}]\n  reduction sum select(in0, r0, 0)\n"
      "  output param 1 f32[3,{0}] at [a0, a1] = s0\n",
      w, w - 3);
}

std::string padded_copy(int h, int w, const std::string& n) {
  return fmt::format(
      "region\nparam input f32[{2},{0},{1}]\nparam output f32[{2},{3},{4}]\nstage map\n  domain [{2},{3},{4}]\n"
      "  read param 0 at [a0, a1 + -1, a2 + -3]\n"
      "  output param 1 f32[{2},{3},{4}] at [a0, a1, a2] = select(in0, r0, 2.5)\n",
      h, w, n, h + 2, w + 8);
}

const std::vector<Case> kCases = {
    {.name = "average", .region = average({})},
    {.name = "average_of_every_second", .region = average({.stride = 2})},
    {.name = "average_5x5", .region = average({.k = 5, .pad = 2})},
    {.name = "average_dilated", .region = average({.pad = 2, .dilation = 2})},
    {.name = "average_wide_padding", .region = average({.h = 9, .w = 150, .pad = 2})},
    {.name = "average_of_whole_vectors", .region = average({.w = 64})},
    {.name = "average_below_a_vector", .region = average({.h = 5, .w = 5})},
    {.name = "average_of_two_vectors", .region = average({.h = 3, .w = 17})},
    {.name = "average_of_an_open_batch",
     .region = average({.n = "n"}),
     .bindings = {{{"n", 1}}, {{"n", 3}}, {{"n", 0}}}},
    {.name = "average_of_halves", .region = average({.dtype = "f16"}), .tolerance = 4e-3},
    {.name = "maximum", .region = pool_region({.c = 5, .h = 21, .w = 91, .stride = 1}, "max")},
    {.name = "depthwise", .region = conv_region({.c = 5, .h = 19, .w = 75, .o = 5, .group = 5})},
    {.name = "flipped", .region = flipped(83)},
    {.name = "copy", .region = padded_copy(13, 150, "2")},
    {.name = "copy_of_few", .region = padded_copy(2, 9, "2")},
    {.name = "copy_of_an_open_batch",
     .region = padded_copy(6, 131, "n"),
     .bindings = {{{"n", 1}}, {{"n", 5}}, {{"n", 0}}}},
};
OPFUSE_CASES(Interior, kCases);

TEST(InteriorText, adds_taps_without_masks) {
  const TargetInfo target = parse_target("cpu:avx2");
  CodegenOptions options;
  options.emit_assembly = true;
  const Case c{.name = "", .region = average({.w = 200})};
  const std::string text = generate({spec_of(c, target)}, target, options).kernels[0].assembly;
  const auto has = [](const std::vector<std::string>& loop, const char* what) {
    return std::any_of(loop.begin(), loop.end(), [&](const auto& line) { return line.find(what) != line.npos; });
  };
  const auto loops = innermost_loops(text);
  EXPECT_TRUE(std::any_of(loops.begin(), loops.end(), [&](const auto& loop) {
    return has(loop, "vaddps") && has(loop, "vmovups") && !has(loop, "vmaskmov") && !has(loop, "vpcmp") &&
           !has(loop, "vcvt");
  })) << text;
}

std::optional<AxisRange> interior(const std::string& text, int axis) {
  const Region region = parse_region(text);
  return interior_of(region, region.stages[0], axis);
}

TEST(InteriorOf, is_what_lies_between_borders) {
  const auto rows = interior(average({.h = 20}), 2), columns = interior(average({.w = 70, .stride = 2}), 3);
  ASSERT_TRUE(rows && columns);
  EXPECT_EQ(rows->low, 1);
  EXPECT_EQ(rows->high, 18);
  EXPECT_EQ(columns->low, 1);
  EXPECT_EQ(columns->high, 34);  // 2 * 34 + 2 - 1 = 69
  const auto backwards = interior(flipped(10), 1);
  ASSERT_TRUE(backwards);
  EXPECT_EQ(backwards->low, 2);
  EXPECT_EQ(backwards->high, 7);
}

TEST(InteriorOf, is_nothing_where_no_guard_asks_or_all_is_border) {
  EXPECT_FALSE(interior(average({}), 0));
  EXPECT_FALSE(interior(average({.h = 2, .k = 5, .pad = 2}), 2));
  EXPECT_FALSE(interior(average({.pad = 0}), 2));
}

TEST(KnownNumbers, are_those_that_every_coordinate_gives) {
  const Expr count =
      Expr::parse("sub(min(max(sub(20:i64, i0), 0:i64), 3:i64), min(max(sub(0:i64, i0), 0:i64), 3:i64))");
  const auto within = [&](int64_t low, int64_t high) { return KnownNumbers({AxisRange{low, high}}).value(count); };
  EXPECT_EQ(within(0, 17), 3);
  EXPECT_EQ(within(18, 18), 2);
  EXPECT_EQ(within(-2, -2), 1);
  EXPECT_EQ(within(0, 18), std::nullopt);
  EXPECT_EQ(KnownNumbers({std::nullopt}).value(count), std::nullopt);
}

}  // namespace
}  // namespace opfuse::test
