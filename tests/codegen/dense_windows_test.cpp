// Windows and rows of the plain nest: every second element along the lanes, functions in front of sums and maxima, taps
// one by one.
#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

/// A pool of f(x), windows k x k, every second of them.
std::string pool_of(const std::string& f, const std::string& n, int side, int k, const std::string& kind = "max") {
  const int out = (side - k) / 2 + 1;
  return fmt::format(
      "region\nparam input f32[{0},3,{1},{1}]\nparam output f32[{0},3,{2},{2}]\nstage window\n  domain "
      "[{0},3,{2},{2}]\n"
      "  reduce [{3},{3}]\n  read param 0 at [a0, a1, 2*a2 + a4, 2*a3 + a5]\n  reduction {4} {5}\n"
      "  output param 1 f32[{0},3,{2},{2}] at [a0, a1, a2, a3] = s0\n",
      n, side, out, k, kind, f);
}

std::string every_second(int count, int first) {
  return fmt::format(
      "region\nparam input f32[4,{0}]\nparam output f32[4,{1}]\nstage map\n  domain [4,{1}]\n"
      "  read param 0 at [a0, 2*a1 + {2}]\n  output param 1 f32[4,{1}] at [a0, a1] = add(r0, 1)\n",
      2 * count - 1 + first, count, first);
}

/// sum f(x) of each row, and 1 / (1 + sum) of each element.
std::string rows_of(const std::string& f, const std::string& rows, int columns) {
  return fmt::format(
      "region\nparam input f32[{0},{1}]\nparam output f32[{0},{1}]\nstage row\n  domain [{0},{1}]\n  reduce [{1}]\n"
      "  read param 0 at [a0, a2]\n  read param 0 at [a0, a1]\n  reduction sum {2}\n"
      "  output param 1 f32[{0},{1}] at [a0, a1] = exp(div(r1, add(s0, 1000)))\n",
      rows, columns, f);
}

const std::vector<Case> kCases = {
    {.name = "max_of_exp", .region = pool_of("exp(r0)", "2", 28, 2)},
    {.name = "max_of_tanh", .region = pool_of("tanh(r0)", "1", 66, 2)},
    {.name = "sum_of_exp_3x3", .region = pool_of("exp(r0)", "1", 33, 3, "sum")},
    {.name = "sum_of_logistic", .region = pool_of("div(1, add(1, exp(neg(r0))))", "1", 35, 3, "sum")},
    {.name = "max_of_few", .region = pool_of("exp(r0)", "1", 5, 2)},
    {.name = "max_of_open_batch",
     .region = pool_of("exp(r0)", "n", 20, 2),
     .bindings = {{{"n", 1}}, {{"n", 3}}, {{"n", 0}}}},
    {.name = "loops_of_taps", .region = pool_of("exp(r0)", "1", 40, 5, "sum")},
    {.name = "padded_pool", .region = pool_region({.c = 5, .h = 21, .w = 37, .stride = 2}, "max")},
    {.name = "padded_depthwise", .region = conv_region({.c = 5, .h = 9, .w = 35, .o = 5, .group = 5})},
    {.name = "every_second", .region = every_second(64, 0)},
    {.name = "every_second_to_the_last", .region = every_second(48, 1)},
    {.name = "every_second_of_few", .region = every_second(21, 1)},
    {.name = "sum_of_tanh", .region = rows_of("tanh(r0)", "19", 100)},
    {.name = "sum_of_exp", .region = rows_of("exp(r0)", "8", 512)},
    {.name = "sum_of_open_rows",
     .region = rows_of("tanh(exp(r0))", "n", 33),
     .bindings = {{{"n", 1}}, {{"n", 9}}, {{"n", 0}}}},
    {.name = "sum_of_long_rows", .region = rows_of("exp(r0)", "3", 5000)},
};
OPFUSE_CASES(DenseWindows, kCases);

}  // namespace
}  // namespace opfuse::test
