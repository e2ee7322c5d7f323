// Elementwise and injective kernels: layouts, broadcasting, padding, concat, gather, element types.
#include <fmt/format.h>

#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

std::string unary(const std::string& dtype, const std::string& shape, const std::string& value) {
  return "region\nparam input " + dtype + shape + "\nparam output " + dtype + shape + "\nstage map\n  domain " + shape +
         "\n  read param 0 at [a0, a1, a2, a3]\n  output param 1 " + dtype + shape + " at [a0, a1, a2, a3] = " + value +
         "\n";
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

const std::vector<Case> kRotated = {
    {.name = "half_is_a_vector", .region = rotated("5", 32)},
    {.name = "half_is_two_vectors", .region = rotated("5", 64)},
    {.name = "half_inside_a_vector", .region = rotated("5", 40)},
    {.name = "half_below_a_vector", .region = rotated("5", 6)},
    {.name = "too_many_vectors_to_unroll", .region = rotated("3", 320)},
    {.name = "open_rows", .region = rotated("n", 80), .bindings = {{{"n", 1}}, {{"n", 7}}, {{"n", 0}}}},
};
OPFUSE_CASES(Rotated, kRotated);

const std::vector<Case> kCases = {
    {.name = "relu_dense", .region = unary("f32", "[2,3,7,5]", "max(r0, 0)")},
    {.name = "relu_blocked", .region = unary("f32", "[2,19,7,5]", "max(r0, 0)"), .layouts = {"0123/1:16", "0123/1:16"}},
    {.name = "exp_blocked_8", .region = unary("f32", "[1,19,3,5]", "exp(r0)"), .layouts = {"0123/1:8", "0123/1:8"}},
    {.name = "to_blocks", .region = unary("f32", "[2,19,7,5]", "r0"), .layouts = {"", "0123/1:16"}},
    {.name = "from_blocks", .region = unary("f32", "[2,19,7,5]", "r0"), .layouts = {"0123/1:16", ""}},
    {.name = "channels_last", .region = unary("f32", "[2,19,7,5]", "r0"), .layouts = {"0231", ""}},
    {.name = "one_channel_to_blocks", .region = unary("f32", "[1,1,1,1]", "r0"), .layouts = {"", "0123/1:16"}},
    {.name = "relu_symbolic",
     .region = unary("f32", "[n,3,h,5]", "max(r0, 0)"),
     .bindings = {{{"n", 1}, {"h", 1}}, {{"n", 2}, {"h", 9}}, {{"n", 17}, {"h", 3}}, {{"n", 0}, {"h", 3}}}},
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
