// What the plain nest does not compute twice, and how it is cut: choices along an axis into pieces, long chains of
// functions into loops over strips, rows that rest in their result from one pass to the next.
#include "codegen/hot_loops.hpp"
#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"
#include "kernel/choice_pieces.hpp"
#include "kernel/reads.hpp"

namespace opfuse::test {
namespace {

/// f(x, z) side by side along channels, and something of both behind it.
std::string concat(const std::string& n, int first, int second, int h, int w, const std::string& behind,
                   const std::string& of_first = "r0", const std::string& of_second = "r1") {
  const auto shape = [&](int c) { return fmt::format("[{},{},{},{}]", n, c, h, w); };
  const std::string joined = fmt::format("select(in0, {}, select(in1, {}, 0))", of_first, of_second);
  return fmt::format(
      "region\nparam input f32{}\nparam input f32{}\nparam output f32{}\nstage map\n  domain {}\n"
      "  read param 0 at [a0, a1, a2, a3]\n  read param 1 at [a0, a1 + -{}, a2, a3]\n"
      "  output param 2 f32{} at [a0, a1, a2, a3] = {}\n",
      shape(first), shape(second), shape(first + second), shape(first + second), first, shape(first + second),
      fmt::format(fmt::runtime(behind), joined));
}

/// A softmax over the last axis of two tensors side by side, and where each point stands.
const std::string kRowsOfConcat = R"(region
param input f32[3,19]
param input f32[5,19]
param output f32[8,19]
stage row
  domain [8,19]
  reduce [19]
  read param 0 at [a0, a2]
  read param 1 at [a0 + -3, a2]
  read param 0 at [a0, a1]
  read param 1 at [a0 + -3, a1]
  reduction max select(in0, r0, select(in1, r1, 0))
  reduction sum exp(sub(select(in0, r0, select(in1, r1, 0)), s0))
  output param 2 f32[8,19] at [a0, a1] = add(div(exp(sub(select(in2, r2, select(in3, r3, 0)), s0)), s1), cast<f32>(i0))
)";

std::string add_norm(const std::string& n, int c) {
  return fmt::format(
      "region\nparam input f32[{0},{1}]\nparam input f32[{0},{1}]\nparam output f32[{0},{1}]\n"
      "param output f32[{0},{1}]\nstage row\n  domain [{0},{1}]\n  reduce [{1}]\n  read param 0 at [a0, a2]\n"
      "  read param 1 at [a0, a2]\n  read param 0 at [a0, a1]\n  read param 1 at [a0, a1]\n"
      "  reduction sum add(r0, r1)\n  reduction sum t0 = sub(add(r0, r1), div(s0, {1})); mul(t0, t0)\n"
      "  output param 2 f32[{0},{1}] at [a0, a1] = add(r2, r3)\n"
      "  output param 3 f32[{0},{1}] at [a0, a1] = mul(sub(add(r2, r3), div(s0, {1})), reciprocal(sqrt(add(s1, "
      "0.01))))\n",
      n, c);
}

/// The first value is read again behind everything: where it lies the result may lie.
const std::string kReadAgain = R"(region
param input f32[4,37]
param output f32[4,37]
stage row
  domain [4,37]
  reduce [37]
  read param 0 at [a0, a2]
  read param 0 at [a0, a1]
  reduction sum exp(r0)
  output param 1 f32[4,37] at [a0, a1] = mul(r1, div(exp(r1), s0))
)";

/// The pass that stores exp(x) goes on to read x across, which that overwrites.
const std::string kReadAcross = R"(region
param input f32[2,9,9]
param input f32[2,9,9]
param output f32[2,9,9]
stage row
  domain [2,9,9]
  reduce [9,9]
  read param 0 at [a0, a3, a4]
  read param 1 at [a0, a3, a4]
  read param 0 at [a0, a4, a3]
  read param 0 at [a0, a1, a2]
  reduction sum mul(mul(exp(r0), r1), r2)
  output param 2 f32[2,9,9] at [a0, a1, a2] = sub(exp(r3), s0)
)";

/// What is summed along the row is a choice along it: two pieces would sum twice, the second what the first stored.
const std::string kRowOfChoices = R"(region
param input f32[3,48]
param input f32[3,16]
param input f32[3,32]
param output f32[3,48]
stage row
  domain [3,48]
  reduce [48]
  read param 0 at [a0, a2]
  read param 1 at [a0, a2]
  read param 2 at [a0, a2 + -16]
  read param 0 at [a0, a1]
  read param 1 at [a0, a1]
  read param 2 at [a0, a1 + -16]
  reduction sum add(r0, select(in1, r1, select(in2, r2, 0)))
  output param 3 f32[3,48] at [a0, a1] = sub(add(r3, select(in4, r4, select(in5, r5, 0))), s0)
)";

std::string functions(const std::string& n, const std::string& c, int count, const std::string& last = "{}") {
  std::string value = "r0";
  const std::string laws[] = {"tanh({})", "sin({})", "exp(neg(abs({})))", "div(1, add(1, exp({})))"};
  for (int i = 0; i < count; ++i) value = fmt::format(fmt::runtime(laws[i % 4]), value);
  value = fmt::format(fmt::runtime(last), value);
  return fmt::format(
      "region\nparam input f32[{0},{1}]\nparam output f32[{0},{1}]\nstage map\n  domain [{0},{1}]\n"
      "  read param 0 at [a0, a1]\n  output param 1 f32[{0},{1}] at [a0, a1] = {2}\n",
      n, c, value);
}

/// A 1x1 convolution of one output, its data computed: lanes of pixels in the plain nest.
const std::string kOneOutput = R"(region
param input f32[2,19,35]
param constant f32[2,19]
param output f32[2,2,35]
stage contraction
  domain [2,2,35]
  reduce [19]
  read param 0 at [a0, a3, a2]
  read param 1 at [a1, a3]
  reduction sum mul(max(r0, 0), r1)
  output param 2 f32[2,2,35] at [a0, a1, a2] = s0
)";

const std::vector<SymbolValues> kBatches = {{{"n", 1}}, {{"n", 3}}};
const std::vector<SymbolValues> kColumns = {{{"n", 1}}, {{"n", 13}}, {{"n", 260}}, {{"n", 5003}}};
const std::string kBlocks = "0123/1:16";

const std::vector<Case> kCases = {
    {.name = "concat_of_two", .region = concat("2", 5, 7, 3, 4, "{}")},
    {.name = "concat_to_blocks", .region = concat("1", 16, 32, 7, 5, "max({}, 0)"), .layouts = {"", "", kBlocks}},
    {.name = "concat_to_ragged_blocks",
     .region = concat("n", 16, 9, 7, 5, "{}"),
     .layouts = {"", "", kBlocks},
     .bindings = kBatches},
    {.name = "concat_inside_a_block", .region = concat("1", 9, 16, 7, 5, "{}"), .layouts = {"", "", kBlocks}},
    {.name = "concat_of_blocks", .region = concat("1", 16, 16, 7, 5, "{}"), .layouts = {kBlocks, kBlocks, ""}},
    {.name = "concat_of_functions",
     .region = concat("n", 4, 3, 9, 33, "tanh({})", "exp(r0)", "max(r1, 0)"),
     .bindings = kBatches},
    {.name = "concat_in_parts", .region = concat("2", 40, 24, 40, 41, "neg({})")},
    {.name = "one_row_and_many", .region = concat("1", 1, 63, 30, 41, "{}")},
    {.name = "rows_of_concat", .region = kRowsOfConcat},
    {.name = "sum_is_read_again", .region = add_norm("n", 100), .bindings = kBatches},
    {.name = "sum_of_whole_vectors", .region = add_norm("9", 64)},
    {.name = "operand_is_read_again", .region = kReadAgain},
    {.name = "operand_is_read_across", .region = kReadAcross, .in_place = {2, 0}},
    {.name = "choices_along_a_row", .region = kRowOfChoices, .in_place = {3, 0}},
    {.name = "functions_of_a_row", .region = functions("1", "1000", 9)},
    {.name = "functions_of_short_rows", .region = functions("n", "40", 9), .bindings = kBatches},
    {.name = "functions_then_the_operand", .region = functions("3", "700", 9, "add({}, r0)")},
    {.name = "one_output", .region = kOneOutput},
    {.name = "functions_of_many_rows", .region = functions("60", "517", 17)},
    {.name = "functions_of_open_rows", .region = functions("2", "n", 18), .bindings = kColumns},
    {.name = "functions_in_parts", .region = functions("1", "70013", 17)},
};
OPFUSE_CASES(Passes, kCases);

std::string assembly_of(const std::string& region) {
  const TargetInfo target = parse_target("cpu:avx2");
  CodegenOptions options;
  options.emit_assembly = true;
  return generate({spec_of({.name = "", .region = region}, target)}, target, options).kernels[0].assembly;
}

/// A chain of four functions that come again and again.
TEST(FunctionChains, are_code_once_for_functions_that_come_again) {
  const size_t few = assembly_of(functions("60", "517", 17)).size(),
               many = assembly_of(functions("60", "517", 65)).size();
  EXPECT_LT(many, few + few / 10);
  EXPECT_LT(few, many);
}

/// max(x, 0) of `read` beside every element of another operand, which has as many as the result.
std::string beside(const std::string& read, const std::string& type) {
  return fmt::format(
      "region\nparam input {}\nparam input f32[4096]\nparam output f32[4096]\nstage map\n  domain [4096]\n"
      "  read param 0 at [{}]\n  read param 1 at [a0]\n"
      "  output param 2 f32[4096] at [a0] = add(max(r0, 0), r1)\n",
      type, read);
}

bool computes_once(const std::string& region) {
  const auto loops = innermost_loops(assembly_of(region));
  return !loops.empty() && std::none_of(loops.begin(), loops.end(), [](const std::vector<std::string>& loop) {
    return std::any_of(loop.begin(), loop.end(),
                       [](const std::string& line) { return line.find("vmax") != std::string::npos; });
  });
}

/// What every element takes from one place is computed once, unless the result may lie there.
TEST(OneOperand, is_computed_outside_of_the_loop) {
  EXPECT_TRUE(computes_once(beside("0", "f32[1]")));
  EXPECT_TRUE(computes_once(beside("7", "f32[9]")));
  EXPECT_FALSE(computes_once(beside("7", "f32[4096]")));
}

TEST(NeverWritten, are_operands_of_other_sizes) {
  const auto region = [](const std::string& read, const std::string& result) {
    return parse_region(fmt::format(
        "region\nparam input f32[{0}]\nparam constant f32[8]\nparam output f32[{1}]\nstage map\n  domain [{1}]\n"
        "  read param 0 at [0]\n  read param 1 at [0]\n  output param 2 f32[{1}] at [a0] = add(r0, r1)\n",
        read, result));
  };
  EXPECT_TRUE(never_written(region("7", "8"), 0));
  EXPECT_TRUE(never_written(region("8", "8"), 1));
  EXPECT_FALSE(never_written(region("8", "8"), 0));
  EXPECT_FALSE(never_written(region("n", "n"), 0));
  EXPECT_FALSE(never_written(region("n", "m"), 0));  // the two may be equal in a run
  EXPECT_TRUE(never_written(region("n", "8"), 0));
  EXPECT_FALSE(never_written(region("7", "8"), 2));
}

TEST(ChoicePieces, are_stages_without_the_choice) {
  const Region region = parse_region(concat("2", 5, 7, 3, 4, "{}"));
  const auto cut = cut_of_choices(region, region.stages[0]);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->axis, 1);
  EXPECT_EQ(cut->ends, (std::vector<int64_t>{0, 5, 12}));
  const auto second = piece_of(region, region.stages[0], 1, 5, 12);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->outputs[0].value.text(), "r0");
  ASSERT_EQ(second->reads.size(), 1);
  EXPECT_EQ(second->reads[0].index, 1);
  EXPECT_EQ(second->reads[0].map.dims[1].offset, Dim(0));
  EXPECT_EQ(second->outputs[0].map.dims[1].offset, Dim(5));
}

TEST(ChoicePieces, are_not_made_of_padding_or_many_parts) {
  const Region region = parse_region(concat("2", 5, 7, 3, 4, "{}", "0", "r1"));
  EXPECT_FALSE(cut_of_choices(region, region.stages[0]));
  const Region two = parse_region(concat("2", 5, 7, 3, 4, "{}"));
  EXPECT_FALSE(cut_of_choices(two, two.stages[0], 1));
}

TEST(ChoicePieces, are_not_made_along_a_row) {
  const Region region = parse_region(kRowOfChoices);
  EXPECT_FALSE(cut_of_choices(region, region.stages[0]));
}

}  // namespace
}  // namespace opfuse::test
