// Reductions and normalisations of rows: in registers, held in shared memory, in passes, of open length.
#include "cuda/case_text.hpp"

namespace opfuse::test {
namespace {

/// Of rows: short, odd, longer than a block has threads, than registers hold, than shared memory holds.
const Bindings kLengths = {{{"n", 1}}, {{"n", 33}}, {{"n", 300}}, {{"n", 9001}}, {{"n", 25089}}};

std::string softmax_text(const std::string& rows, const std::string& n, const std::string& dtype = "f32") {
  return fmt::format(
      "region\nparam input {2}[{0},{1}]\nparam output {2}[{0},{1}]\nstage row\n  domain [{0},{1}]\n  reduce [{1}]\n"
      "  read param 0 at [a0, a2]\n  read param 0 at [a0, a1]\n  reduction max {3}\n"
      "  reduction sum {4}\n  output param 1 {2}[{0},{1}] at [a0, a1] = {5}\n",
      rows, n, dtype, typed("r0", dtype), typed("exp(sub(r0, s0))", dtype), typed("div(exp(sub(r1, s0)), s1)", dtype));
}

std::string reduce_text(const std::string& rows, const std::string& n, const std::string& kind, bool inner,
                        const std::string& dtype = "f32") {
  return fmt::format(
      "region\nparam input {4}[{2},{3}]\nparam output {4}[{0}]\nstage row\n  domain [{0}]\n  reduce [{1}]\n"
      "  read param 0 at [{5}]\n  reduction {6} {7}\n  output param 1 {4}[{0}] at [a0] = {8}\n",
      rows, n, inner ? rows : n, inner ? n : rows, dtype, inner ? "a0, a1" : "a1, a0", kind, typed("r0", dtype),
      typed("s0", dtype));
}

/// The sum of the products of `reads` operands, row by row, taken from each of them: rows that registers keep.
std::string rows_text(int rows, int n, int reads) {
  std::string text = "region\n", value = "r0", result = fmt::format("sub(r{}, s0)", reads);
  for (int i = 0; i < reads; ++i) text += fmt::format("param input f32[{},{}]\n", rows, n);
  text += fmt::format("param output f32[{0},{1}]\nstage row\n  domain [{0},{1}]\n  reduce [{1}]\n", rows, n);
  for (int i = 0; i < reads; ++i) text += fmt::format("  read param {} at [a0, a2]\n", i);
  for (int i = 0; i < reads; ++i) text += fmt::format("  read param {} at [a0, a1]\n", i);
  for (int i = 1; i < reads; ++i) {
    value = fmt::format("mul({}, r{})", value, i);
    result = fmt::format("sub(r{}, {})", reads + i, result);
  }
  return text + fmt::format("  reduction sum {}\n  output param {} f32[{},{}] at [a0, a1] = {}\n", value, reads, rows,
                            n, result);
}

/// (x - mean) / sqrt(variance + epsilon) * weight + bias over rows of n.
std::string layer_norm_text(const std::string& rows, const std::string& n) {
  return fmt::format(
      "region\nparam input f32[{0},{1}]\nparam input f32[{1}]\nparam input f32[{1}]\nparam output f32[{0},{1}]\n"
      "stage row\n  domain [{0},{1}]\n  reduce [{1}]\n  read param 0 at [a0, a2]\n  read param 0 at [a0, a1]\n"
      "  read param 1 at [a1]\n  read param 2 at [a1]\n  reduction sum r0\n"
      "  reduction sum mul(sub(r0, mul(s0, 0.001)), sub(r0, mul(s0, 0.001)))\n"
      "  output param 3 f32[{0},{1}] at [a0, a1] = "
      "add(mul(div(sub(r1, mul(s0, 0.001)), sqrt(add(s1, 0.00001))), r2), r3)\n",
      rows, n);
}

/// The same over channels that lie apart: rows side by side.
std::string norm_across_text(int n, int c, int h, int w) {
  return fmt::format(
      "region\nparam input f32[{0},{1},{2},{3}]\nparam input f32[{1}]\nparam output f32[{0},{1},{2},{3}]\n"
      "stage row\n  domain [{0},{2},{3},{1}]\n  reduce [{1}]\n  read param 0 at [a0, a4, a1, a2]\n"
      "  read param 0 at [a0, a3, a1, a2]\n  read param 1 at [a3]\n  reduction sum r0\n"
      "  reduction sum mul(sub(r0, mul(s0, 0.001)), sub(r0, mul(s0, 0.001)))\n"
      "  output param 2 f32[{0},{1},{2},{3}] at [a0, a3, a1, a2] = "
      "mul(div(sub(r1, mul(s0, 0.001)), sqrt(add(s1, 0.00001))), r2)\n",
      n, c, h, w);
}

/// Softmax of the sum of two operands of different width.
std::string masked_text(const std::string& rows, const std::string& n) {
  return fmt::format(
      "region\nparam input f16[{0},{1}]\nparam input f32[{0},{1}]\nparam output f32[{0},{1}]\nstage row\n"
      "  domain [{0},{1}]\n  reduce [{1}]\n  read param 0 at [a0, a2]\n  read param 1 at [a0, a2]\n"
      "  read param 0 at [a0, a1]\n  read param 1 at [a0, a1]\n  reduction max add(cast<f32>(r0:f16), r1)\n"
      "  reduction sum exp(sub(add(cast<f32>(r0:f16), r1), s0))\n"
      "  output param 2 f32[{0},{1}] at [a0, a1] = div(exp(sub(add(cast<f32>(r2:f16), r3), s0)), s1)\n",
      rows, n);
}

/// A normalisation behind a concatenation of one row and many: guards say which of both a row takes.
std::string joined_text(int rows, const std::string& n) {
  const auto x = [](int r) {
    return fmt::format("add(select(in{1}, r{1}, select(in{0}, r{0}, 0)), r{2})", r, r + 1, r + 2);
  };
  return fmt::format(
      "region\nparam input f32[2,{0},{2}]\nparam input f32[2,1,{2}]\nparam input f32[{1},{2}]\nparam output "
      "f32[2,{1},{2}]\nstage row\n  domain [2,{1},{2}]\n  reduce [{2}]\n  read param 0 at [a0, a1 + -1, a3]\n"
      "  read param 1 at [a0, a1, a3]\n  read param 2 at [a1, a3]\n  read param 0 at [a0, a1 + -1, a2]\n"
      "  read param 1 at [a0, a1, a2]\n  read param 2 at [a1, a2]\n  reduction sum {3}\n"
      "  reduction sum abs(sub({3}, mul(s0, 0.01)))\n"
      "  output param 3 f32[2,{1},{2}] at [a0, a1, a2] = div(sub({4}, mul(s0, 0.01)), s1)\n",
      rows, rows + 1, n, x(0), x(3));
}

/// The same of rows that indices choose from a table.
std::string chosen_text(int rows, const std::string& n) {
  return fmt::format(
      "region\nparam input i64[{0}]\nparam input f32[7,{1}]\nparam input f32[{0},{1}]\nparam output f32[{0},{1}]\n"
      "stage row\n  domain [{0},{1}]\n  reduce [{1}]\n  read param 0 at [a0]\n"
      "  read param 1 at [`mod(r0:i64, 7:i64)`, a2]\n  read param 2 at [a0, a2]\n"
      "  read param 1 at [`mod(r0:i64, 7:i64)`, a1]\n  read param 2 at [a0, a1]\n  reduction sum add(r1, r2)\n"
      "  reduction sum abs(sub(add(r1, r2), mul(s0, 0.01)))\n"
      "  output param 3 f32[{0},{1}] at [a0, a1] = div(sub(add(r3, r4), mul(s0, 0.01)), s1)\n",
      rows, n);
}

/// The sum of |x - reversed x|: rows whose second operand no position of the row has.
std::string centred_text(int rows, int n) {
  return fmt::format(
      "region\nparam input f32[{0},{1}]\nparam output f32[{0},{1}]\nstage row\n  domain [{0},{1}]\n  reduce [{1}]\n"
      "  read param 0 at [a0, a2]\n  read param 0 at [a0, -1*a1 + {2}]\n  reduction sum r0\n"
      "  reduction max abs(sub(r0, s0))\n  output param 1 f32[{0},{1}] at [a0, a1] = div(r1, s1)\n",
      rows, n, n - 1);
}

}  // namespace

const std::vector<CudaCase>& row_cases() {
  static const std::vector<CudaCase> cases = {
      {"softmax", softmax_text("5", "64")},
      {"softmax_prime", softmax_text("7", "131")},
      {"softmax_tiny", softmax_text("3", "1")},
      {"softmax_short", softmax_text("9", "5")},
      {"softmax_long", softmax_text("2", "2053")},
      {"softmax_longer", softmax_text("2", "9001")},
      {"softmax_held", softmax_text("2", "12289")},
      {"softmax_held_prime", softmax_text("3", "10007")},
      {"softmax_held_most", softmax_text("1", "25088")},
      {"softmax_too_long", softmax_text("1", "25089")},
      {.name = "softmax_held_half", .region = softmax_text("2", "20011", "f16"), .tolerance = 2e-3},
      {"softmax_held_two", softmax_text("1", "10006")},
      {"softmax_held_wide", softmax_text("1", "17001")},
      {"softmax_held_wide_two", softmax_text("1", "17002")},
      half("softmax_registers_half", softmax_text("3", "512")),
      half("softmax_block_half", softmax_text("2", "4096")),
      half("softmax_held_half_eight", softmax_text("1", "20008")),
      half("softmax_held_half_wide", softmax_text("1", "40008")),
      {"mean_two", reduce_text("2", "16386", "sum", true)},
      {"mean_four", reduce_text("2", "16388", "sum", true)},
      half("mean_eight", reduce_text("2", "16392", "max", true)),
      {"layer_norm", layer_norm_text("5", "96")},
      {"layer_norm_four", layer_norm_text("5", "260")},
      {"layer_norm_held", layer_norm_text("2", "8209")},
      {"layer_norm_too_long", layer_norm_text("1", "30011")},
      {"layer_norm_open", layer_norm_text("2", "n"), kLengths},
      {"norm_across", norm_across_text(2, 150, 4, 8)},
      {"norm_across_ragged", norm_across_text(3, 20, 5, 7)},
      {"norm_across_long", norm_across_text(1, 600, 9, 9)},
      half("norm_across_half", norm_across_text(2, 24, 8, 5)),
      {"masked_held", masked_text("2", "16001")},
      {.name = "masked_short",
       .region = masked_text("3", "300"),
       .schedule = {"rows", {{"team", 512}, {"held", 300}, {"block", 512}}}},
      {.name = "masked_short_four",
       .region = masked_text("3", "1100"),
       .schedule = {"rows", {{"team", 512}, {"held", 1100}, {"vector", 4}, {"block", 512}}}},
      {"masked_open", masked_text("2", "n"), kLengths},
      {"centred_held", centred_text(2, 9001)},
      {"joined", joined_text(3, "96")},
      {"joined_prime", joined_text(2, "131")},
      {"joined_held", joined_text(1, "8209")},
      {"joined_open", joined_text(2, "n"), kLengths},
      half("joined_half", joined_text(2, "200")),
      {"chosen", chosen_text(5, "96")},
      {"chosen_held", chosen_text(3, "9001")},
      {"chosen_open", chosen_text(3, "n"), kLengths},
      {"sum_open", reduce_text("3", "n", "sum", true), kLengths},
      {"max_longest", reduce_text("2", "40009", "max", true)},
      {"softmax_open", softmax_text("3", "n"), kLengths},
      {.name = "softmax_open_short",
       .region = softmax_text("3", "n"),
       .bindings = {{{"n", 5}}, {{"n", 40}}, {{"n", 41}}, {{"n", 300}}},
       .schedule = {"rows", {{"team", 256}, {"held", 40}, {"block", 256}}}},
      {"softmax_open_columns", softmax_text("n", "m"), {{{"n", 3}, {"m", 257}}, {{"n", 1}, {"m", 26003}}}},
      {"softmax_open_rows", softmax_text("n", "67"), kSizes},
      {"softmax_registers", softmax_text("3", "1024")},
      {"softmax_most_registers", softmax_text("2", "8192")},
      {"softmax_one", softmax_text("1", "1")},
      {"rows_of_three", rows_text(2, 8192, 3)},
      {"rows_of_three_short", rows_text(3, 1024, 3)},
      {"rows_of_four", rows_text(2, 8192, 4)},
      {"rows_of_four_short", rows_text(3, 1009, 4)},
      {"rows_of_four_half_as_long", rows_text(2, 4099, 4)},
      {.name = "softmax_half_prime", .region = softmax_text("7", "131", "f16"), .tolerance = 2e-3},
      {.name = "softmax_bfloat", .region = softmax_text("5", "37", "bf16"), .tolerance = 1e-2},
      {.name = "sum_half", .region = reduce_text("11", "97", "sum", true, "f16"), .tolerance = 2e-3},
      {.name = "max_bfloat", .region = reduce_text("5", "300", "max", true, "bf16"), .tolerance = 1e-2},
      {"sum_one", reduce_text("1", "1", "sum", true)},
      {.name = "softmax_half", .region = softmax_text("5", "96", "f16"), .tolerance = 2e-3},
      {"sum", reduce_text("13", "200", "sum", true)},
      {"sum_columns", reduce_text("70", "45", "sum", false)},
      {"max_columns", reduce_text("3", "45", "max", false)},
      {"sum_long", reduce_text("3", "4100", "sum", true)},
      {"min_long", reduce_text("3", "4100", "min", true)},
      with({"product", reduce_text("6", "40", "product", true)}, 0.9, 1.1),
      {"sum_integers", reduce_text("6", "70", "sum", true, "i32")},
      {"max_bytes", reduce_text("6", "70", "max", true, "i8")},
      {"max_long", reduce_text("2", "1500", "max", true, "i64")},
      {"sum_double", reduce_text("4", "1100", "sum", true, "f64")},
  };
  return cases;
}

}  // namespace opfuse::test
