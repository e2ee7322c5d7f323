// Elementwise and injective kernels: layouts, broadcasting, padding, concat, gather, element types.
#include <fmt/format.h>

#include <cmath>

#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

std::string unary(const std::string& dtype, const std::string& shape, const std::string& value) {
  return "region\nparam input " + dtype + shape + "\nparam output " + dtype + shape + "\nstage map\n  domain " + shape +
         "\n  read param 0 at [a0, a1, a2, a3]\n  output param 1 " + dtype + shape + " at [a0, a1, a2, a3] = " + value +
         "\n";
}

/// [2, 1] in the middle of zeros, five a row: more than a vector of 64-bit elements where registers have 32 bytes.
std::string bordered(const std::string& dtype) {
  return fmt::format(
      "region\nparam input {0}[2,1]\nparam output {0}[5,5]\nstage map\n  domain [5,5]\n"
      "  read param 0 at [a0 + -1, a1 + -2]\n  output param 1 {0}[5,5] at [a0, a1] = select(in0, r0:{0}, 0:{0})\n",
      dtype);
}

/// A rotary embedding of [2, rows, size]: x cos + [-x[half:], x[:half]] sin.
std::string rotated(const std::string& rows, int size) {
  const std::string shape = fmt::format("f32[2,{},{}]", rows, size), table = fmt::format("f32[{},{}]", rows, size);
  const int half = size / 2;
  return fmt::format(
      "region\nparam input {0}\nparam input {1}\nparam input {1}\nparam output {0}\nstage map\n  domain [2,{2},{3}]\n"
      "  read param 0 at [a0, a1, a2]\n  read param 1 at [a1, a2]\n  read param 0 at [a0, a1, a2 + -{4}]\n"
      "  read param 0 at [a0, a1, a2 + {4}]\n  read param 2 at [a1, a2]\n"
      "  output param 3 {0} at [a0, a1, a2] = add(mul(r0, r1), mul(select(logical_and(lt(i2, {4}:i64), in3), neg(r3), "
      "select(in2, r2, 0)), r4))\n",
      shape, table, rows, size, half);
}

/// An image of planes whose colours come to lie together, quantised or rounded.
Case colours(std::string name, int channels, const std::string& size, const std::string& type, int block) {
  const std::string shape = fmt::format("[2,{},{}]", channels, size);
  const std::string value = type == "u8" ? "cast<u8>(add(min(max(round_even(mul(r0, 37.5)), -100), 155), 100))"
                                         : fmt::format("cast<{}>(mul(r0, 3))", type);
  Case c;
  c.name = std::move(name);
  c.region = fmt::format(
      "region\nparam input f32{0}\nparam output {1}{0}\nstage map\n  domain {0}\n  read param 0 at [a0, a1, a2, a3]\n"
      "  output param 1 {1}{0} at [a0, a1, a2, a3] = {2}\n",
      shape, type, value);
  c.layouts = {"", fmt::format("0123/1:{}", block)};
  c.tolerance = type == "u8" ? 0 : 4e-3;
  return c;
}

const std::vector<Case> kColours = {
    colours("codes", 3, "16,16", "u8", 4),
    colours("codes_odd", 3, "13,11", "u8", 4),
    colours("codes_of_four", 4, "9,7", "u8", 4),
    colours("codes_of_two", 2, "8,40", "u8", 4),
    colours("codes_of_few_pixels", 3, "2,3", "u8", 4),
    colours("halves", 3, "13,11", "bf16", 4),
    colours("halves_in_words", 2, "16,8", "bf16", 2),
    colours("narrow", 5, "11,11", "f16", 8),
    colours("plain", 3, "12,12", "f32", 4),
};
OPFUSE_CASES(Colours, kColours);

/// A pair of Q and DQ with zero point `zero`: steps of 1/8, ties, what is far outside, infinity, NaN, -0.
Case rounded(const std::string& name, const std::string& type, int64_t zero, const std::string& value) {
  const auto [low, high] = type == "u8" ? std::pair(0, 255) : std::pair(-128, 127);
  const std::string code = fmt::format(
      "cast<i32>(cast<{0}>(min(max(add(round_even(div(r0, 0.125)), cast<f32>(r1:{0})), {1}), {2})))", type, low, high);
  Case c;
  c.name = name;
  c.region = fmt::format(
      "region\nparam input f32[403]\nparam input {0}[1]\nparam output f32[403]\nstage map\n  domain [403]\n"
      "  read param 0 at [a0]\n  read param 1 at [0]\n  output param 2 f32[403] at [a0] = {1}\n",
      type,
      fmt::format(fmt::runtime(value), fmt::format("mul(cast<f32>(sub({}, cast<i32>(r1:{}))), 0.125)", code, type)));
  Tensor x(DType::f32, {403}), z(type == "u8" ? DType::u8 : DType::i8, {1});
  for (int64_t i = 0; i < 403; ++i) x.set_real(i, static_cast<double>(i - 200) / 8 + (i % 3) * 0.0625);
  const double ends[] = {std::nan(""), -0.0, 1e30, -1e30, HUGE_VAL, -HUGE_VAL, 1e-30, -1e-30};
  for (int64_t i = 0; i < 8; ++i) x.set_real(17 * i, ends[i]);
  z.set_integer(0, zero);
  c.operands = {x, z};
  c.tolerance = 0;
  c.precision = Precision::typed;
  return c;
}

const std::vector<Case> kRounded = {
    rounded("u8", "u8", 117, "{}"),
    rounded("u8_without_zero", "u8", 0, "{}"),
    rounded("u8_all_above", "u8", 255, "{}"),
    rounded("i8", "i8", -5, "{}"),
    rounded("i8_without_zero", "i8", 0, "{}"),
    rounded("sign_of_u8", "u8", 0, "div(1, {})"),  // of 0
    rounded("sign_of_i8", "i8", 0, "div(1, {})"),
};
OPFUSE_CASES(NumbersOfCodes, kRounded);

TEST(NumbersOfCodesText, stay_floats) {
  const TargetInfo target = parse_target("cpu:avx512");
  CodegenOptions options;
  options.emit_assembly = true;
  const std::string text = generate({spec_of(kRounded[0], target)}, target, options).kernels[0].assembly;
  EXPECT_NE(text.find("vrndscaleps"), std::string::npos) << text;
  EXPECT_EQ(text.find("vcvttps2dq\t%zmm"), std::string::npos) << text;
  EXPECT_EQ(text.find("vcvtdq2ps\t%zmm"), std::string::npos) << text;
}

/// Lanes run along the pixels: every vector is one of them, and one store has all channels.
TEST(ColoursText, is_stored_in_whole_vectors) {
  const TargetInfo target = parse_target("cpu:avx512");
  CodegenOptions options;
  options.emit_assembly = true;
  const KernelSpec spec = spec_of(colours("", 3, "32,32", "u8", 4), target);
  const std::string text = generate({spec}, target, options).kernels[0].assembly;
  EXPECT_NE(text.find("vcvtps2dq\t%zmm"), std::string::npos) << text;
  EXPECT_EQ(text.find("vcvtps2dq\t%xmm"), std::string::npos) << text;
}

/// `count` results of one operand, more than are computed before the first is stored.
std::string many_results(int count, const std::string& dtype, const std::string& row, int rows = 3) {
  const std::string type = fmt::format("{}[{},{}]", dtype, rows, row);
  std::string text = "region\nparam input " + type + "\n";
  for (int i = 0; i < count; ++i) text += "param output " + type + "\n";
  text += fmt::format("stage map\n  domain [{},{}]\n  read param 0 at [a0, a1]\n", rows, row);
  for (int i = 0; i < count; ++i)
    text += fmt::format(
        "  output param {0} {1} at [a0, a1] = select(lt(r0:{2}, 0:{2}), mul(r0:{2}, 0.{0}1:{2}), add(r0:{2}, "
        "{0}:{2}))\n",
        i + 1, type, dtype);
  return text;
}

const std::vector<Case> kManyResults = {
    {.name = "of_a_vector", .region = many_results(9, "f32", "8")},
    {.name = "ragged", .region = many_results(40, "f32", "37")},
    {.name = "over_the_operand", .region = many_results(12, "f32", "37"), .in_place = {1, 0}},
    {.name = "open", .region = many_results(12, "f32", "n"), .bindings = {{{"n", 1}}, {{"n", 50}}}, .in_place = {1, 0}},
    {.name = "halves", .region = many_results(12, "f16", "37"), .tolerance = 2e-3},
};
OPFUSE_CASES(ManyResults, kManyResults);

/// Operands' pointers and results are in registers only while they are used.
TEST(ManyResultsText, nothing_rests_on_the_stack) {
  const TargetInfo target = parse_target("cpu:avx512");
  CodegenOptions options;
  options.emit_assembly = true;
  const Case c{.name = "", .region = many_results(64, "f32", "8", 1)};
  const std::string text = generate({spec_of(c, target)}, target, options).kernels[0].assembly;
  EXPECT_EQ(text.find("(%rsp)"), std::string::npos);
}

/// The last vector of a row of every length.
std::vector<Case> ragged_rows() {
  std::vector<Case> cases;
  for (const char* dtype : {"f32", "f16"})
    for (const char* columns : {"1", "2", "3", "5", "6", "7", "9", "11", "13", "15", "49"})
      cases.push_back({.name = std::string(dtype) + "_" + columns,
                       .region = many_results(2, dtype, columns),
                       .tolerance = dtype == std::string("f16") ? 2e-3 : 2e-5});
  return cases;
}
const std::vector<Case> kRaggedRows = ragged_rows();
OPFUSE_CASES(RaggedRows, kRaggedRows);

TEST(RaggedRowsText, avx2_stores_known_lanes_without_a_mask) {
  const TargetInfo target = parse_target("cpu:avx2");
  CodegenOptions options;
  options.emit_assembly = true;
  const Case c{.name = "", .region = many_results(2, "f32", "37")};
  const std::string text = generate({spec_of(c, target)}, target, options).kernels[0].assembly;
  EXPECT_NE(text.find("vmov"), std::string::npos);
  EXPECT_THAT(text, testing::Not(testing::ContainsRegex("vmaskmovps\t%[xy]mm[0-9]+, %[xy]mm[0-9]+, ")));
}

const std::vector<Case> kRotated = {
    {.name = "half_is_a_vector", .region = rotated("5", 32)},
    {.name = "half_is_two_vectors", .region = rotated("5", 64)},
    {.name = "half_inside_a_vector", .region = rotated("5", 40)},
    {.name = "half_below_a_vector", .region = rotated("5", 6)},
    {.name = "too_many_vectors_to_unroll", .region = rotated("3", 320)},
    {.name = "open_rows", .region = rotated("n", 80), .bindings = {{{"n", 1}}, {{"n", 7}}, {{"n", 0}}}},
};
OPFUSE_CASES(Rotated, kRotated);

/// y = f(x, z) over [2, m, n], where x is [2, n, m]: lanes of x lie across those of y.
std::string turned(const std::string& m, const std::string& n, const std::string& dtype, const std::string& value) {
  return fmt::format(
      "region\nparam input {2}[2,{1},{0}]\nparam input {2}[2,{0},{1}]\nparam output {2}[2,{0},{1}]\nstage map\n"
      "  domain [2,{0},{1}]\n  read param 0 at [a0, a2, a1]\n  read param 1 at [a0, a1, a2]\n"
      "  output param 2 {2}[2,{0},{1}] at [a0, a1, a2] = {3}\n",
      m, n, dtype, value);
}

/// y = f(x) over [2, m, n], where x is [2, n, m]: the last squares end with the axes.
std::string turned_alone(const std::string& m, const std::string& n, const std::string& value) {
  return fmt::format(
      "region\nparam input f32[2,{1},{0}]\nparam output f32[2,{0},{1}]\nstage map\n  domain [2,{0},{1}]\n"
      "  read param 0 at [a0, a2, a1]\n  output param 1 f32[2,{0},{1}] at [a0, a1, a2] = {2}\n",
      m, n, value);
}

const std::vector<Case> kTurned = {
    {.name = "ends_with_both_axes", .region = turned_alone("37", "53", "neg(r0)")},
    {.name = "ends_with_one_axis", .region = turned_alone("32", "53", "neg(r0)")},
    {.name = "one_more_than_a_square", .region = turned_alone("17", "17", "neg(r0)")},
    {.name = "functions_take_turns", .region = turned_alone("37", "53", "exp(neg(r0))")},
    {.name = "functions_of_whole_squares", .region = turned_alone("32", "48", "exp(neg(r0))")},
    {.name = "functions_of_few_rows", .region = turned_alone("5", "53", "exp(neg(r0))")},
    {.name = "functions_of_open_extents",
     .region = turned_alone("m", "n", "exp(neg(r0))"),
     .bindings = {{{"m", 1}, {"n", 9}}, {{"m", 16}, {"n", 17}}, {{"m", 33}, {"n", 5}}}},
    {.name = "over_the_operand", .region = turned("37", "53", "f32", "exp(add(r0, r1))"), .in_place = {2, 1}},
    {.name = "whole_squares", .region = turned("32", "48", "f32", "add(r0, r1)")},
    {.name = "ragged", .region = turned("37", "53", "f32", "mul(r0, r1)")},
    {.name = "narrow", .region = turned("5", "7", "f32", "sub(r0, r1)")},
    {.name = "short_across", .region = turned("3", "40", "f32", "sub(r0, r1)")},
    {.name = "integers", .region = turned("19", "33", "i32", "add(r0:i32, r1:i32)")},
    {.name = "wide", .region = turned("19", "33", "f64", "add(r0:f64, r1:f64)"), .tolerance = 1e-13},
    {.name = "into_blocks", .region = turned("21", "19", "f32", "add(r0, r1)"), .layouts = {"", "", "012/2:16"}},
    {.name = "out_of_blocks", .region = turned("21", "19", "f32", "add(r0, r1)"), .layouts = {"012/1:16", "", ""}},
    {.name = "open",
     .region = turned("m", "n", "f32", "add(r0, r1)"),
     .bindings = {{{"m", 1}, {"n", 1}}, {{"m", 16}, {"n", 17}}, {{"m", 33}, {"n", 5}}, {{"m", 0}, {"n", 3}}}},
};
OPFUSE_CASES(Turned, kTurned);

/// Parts of [2, 8, w], of three and five rows: each has a function of its own.
std::string parts(const std::string& w, const std::string& first, const std::string& second) {
  return fmt::format(
      "region\nparam input f32[2,3,{0}]\nparam input f32[2,5,{0}]\nparam output f32[2,8,{0}]\nstage map\n  domain "
      "[2,8,{0}]\n"
      "  read param 0 at [a0, a1, a2]\n  read param 1 at [a0, a1 + -3, a2]\n"
      "  output param 2 f32[2,8,{0}] at [a0, a1, a2] = neg(select(in0, {1}, select(in1, {2}, 0)))\n",
      w, first, second);
}

const std::vector<Case> kParts = {
    {.name = "functions", .region = parts("40", "exp(r0)", "tanh(r1)")},
    {.name = "several_vectors", .region = parts("150", "exp(r0)", "tanh(r1)")},
    {.name = "one_function", .region = parts("33", "mul(r0, r0)", "exp(r1)")},
    {.name = "shared_function", .region = parts("33", "add(exp(r0), tanh(exp(r0)))", "exp(mul(exp(r1), exp(r1)))")},
    {.name = "lanes_in_both_parts",
     .region =
         "region\nparam input f32[4,20]\nparam input f32[4,30]\nparam output f32[4,50]\nstage map\n  domain [4,50]\n"
         "  read param 0 at [a0, a1]\n  read param 1 at [a0, a1 + -20]\n"
         "  output param 2 f32[4,50] at [a0, a1] = select(in0, exp(r0), select(in1, tanh(r1), 0))\n"},
    {.name = "open",
     .region = parts("w", "exp(r0)", "tanh(r1)"),
     .bindings = {{{"w", 1}}, {{"w", 16}}, {{"w", 75}}, {{"w", 0}}}},
};
OPFUSE_CASES(Parts, kParts);

const std::vector<Case> kCases = {
    {.name = "relu_dense", .region = unary("f32", "[2,3,7,5]", "max(r0, 0)")},
    {.name = "relu_blocked", .region = unary("f32", "[2,19,7,5]", "max(r0, 0)"), .layouts = {"0123/1:16", "0123/1:16"}},
    {.name = "exp_blocked_8", .region = unary("f32", "[1,19,3,5]", "exp(r0)"), .layouts = {"0123/1:8", "0123/1:8"}},
    {.name = "exp_of_vectors_at_once", .region = unary("f32", "[1,1,1,64]", "exp(r0)")},
    {.name = "exp_of_vectors_and_a_rest", .region = unary("f32", "[1,2,3,155]", "exp(tanh(r0))")},
    {.name = "exp_of_wide_vectors", .region = unary("f64", "[1,1,3,77]", "exp(r0:f64)"), .tolerance = 1e-13},
    {.name = "exp_of_blocks_at_once", .region = unary("f32", "[1,150,2,3]", "exp(r0)"), .layouts = {"0231", "0231"}},
    {.name = "to_blocks", .region = unary("f32", "[2,19,7,5]", "r0"), .layouts = {"", "0123/1:16"}},
    {.name = "from_blocks", .region = unary("f32", "[2,19,7,5]", "r0"), .layouts = {"0123/1:16", ""}},
    {.name = "channels_last", .region = unary("f32", "[2,19,7,5]", "r0"), .layouts = {"0231", ""}},
    {.name = "one_channel_to_blocks", .region = unary("f32", "[1,1,1,1]", "r0"), .layouts = {"", "0123/1:16"}},
    {.name = "relu_symbolic",
     .region = unary("f32", "[n,3,h,5]", "max(r0, 0)"),
     .bindings = {{{"n", 1}, {"h", 1}}, {{"n", 2}, {"h", 9}}, {{"n", 17}, {"h", 3}}, {{"n", 0}, {"h", 3}}}},
    {.name = "i64_border", .region = bordered("i64")},
    {.name = "f64_border", .region = bordered("f64")},
    {.name = "i64_arithmetic", .region = unary("i64", "[1,2,3,5]", "div(mul(r0:i64, r0:i64), sub(r0:i64, 7:i64))")},
    {.name = "i8_min", .region = unary("i8", "[1,2,3,15]", "min(r0:i8, 5:i8)")},
    {.name = "f64_math",
     .region = unary("f64", "[1,2,3,5]", "tanh(add(exp(r0:f64), log(abs(r0:f64))))"),
     .tolerance = 1e-13},
    {.name = "f16_storage", .region = unary("f16", "[1,2,3,15]", "add(r0:f16, r0:f16)"), .tolerance = 1e-3},
    {.name = "bf16_storage", .region = unary("bf16", "[1,2,3,15]", "mul(r0:bf16, r0:bf16)"), .tolerance = 1e-2},
};
OPFUSE_CASES(MapUnary, kCases);

}  // namespace
}  // namespace opfuse::test
