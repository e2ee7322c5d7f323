// Every single stage in dense layouts: the generic nest is the fallback of all skeletons.
#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

const std::vector<SymbolValues> kBatches = {{{"n", 1}}, {{"n", 2}}, {{"n", 3}}, {{"n", 17}}};

std::string softmax(const std::string& n, int c) {
  const std::string s = fmt::format("[{},{}]", n, c);
  return "region\nparam input f32" + s + "\nparam output f32" + s + "\nstage row\n  domain " + s +
         fmt::format("\n  reduce [{}]\n  read param 0 at [a0, a2]\n  read param 0 at [a0, a1]\n", c) +
         "  reduction max r0\n  reduction sum exp(sub(r0, s0))\n  output param 1 f32" + s +
         " at [a0, a1] = div(exp(sub(r1, s0)), s1)\n";
}

/// Rows along the last axis of an image, stored there or (`turned`) with that axis second.
std::string layer_norm(const std::string& n, int h, int w, int c, bool turned = false) {
  const std::string x = fmt::format("[{},{},{},{}]", n, h, w, c);
  const std::string y = turned ? fmt::format("[{},{},{},{}]", n, c, h, w) : x;
  return fmt::format(
      "region\nparam input f32{0}\nparam constant f32[{2}]\nparam output f32{1}\nstage row\n  domain {0}\n"
      "  reduce [{2}]\n  read param 0 at [a0, a1, a2, a4]\n  read param 0 at [a0, a1, a2, a3]\n  read param 1 at [a3]\n"
      "  reduction sum r0\n  reduction sum mul(sub(r0, div(s0, {2})), sub(r0, div(s0, {2})))\n"
      "  output param 2 f32{1} at [{3}] = mul(mul(sub(r1, div(s0, {2})), reciprocal(sqrt(add(s1, 0.01)))), r2)\n",
      x, y, c, turned ? "a0, a3, a1, a2" : "a0, a1, a2, a3");
}

Case in_blocks(std::string name, const std::string& region, const TargetInfo& target) {
  const std::string last = Layout::channels_blocked(4, 3, target.lanes_f32()).text();
  const std::string second = Layout::channels_blocked(4, 1, target.lanes_f32()).text();
  const bool turned = region.find("a0, a3, a1, a2") != std::string::npos;
  return {
      .name = std::move(name), .region = region, .layouts = {last, "", turned ? second : last}, .bindings = kBatches};
}

std::string global_average(const std::string& n, int c, int h, int w) {
  return fmt::format(
      "region\nparam input f32[{0},{1},{2},{3}]\nparam output f32[{0},{1},1,1]\nstage row\n  domain [{0},{1},1,1]\n"
      "  reduce [{2},{3}]\n  read param 0 at [a0, a1, a4, a5]\n  reduction sum r0\n"
      "  output param 1 f32[{0},{1},1,1] at [a0, a1, a2, a3] = div(s0, {4})\n",
      n, c, h, w, h * w);
}

const std::string kConcat = R"(region
param input f32[2,5,3,4]
param input f32[2,7,3,4]
param output f32[2,12,3,4]
stage map
  domain [2,12,3,4]
  read param 0 at [a0, a1, a2, a3]
  read param 1 at [a0, a1 + -5, a2, a3]
  output param 2 f32[2,12,3,4] at [a0, a1, a2, a3] = select(in0, r0, select(in1, r1, 0))
)";

// Both operands of min leave their tensors where the first is asked whether it does.
const std::string kBorderOfTwo = R"(region
param constant f32[4,3,4]
param input f32[1,12,4]
param input f32[1,12,4]
param output f32[1,4,7]
stage contraction
  domain [1,4,7]
  reduce [3,4]
  read param 0 at [a1, a3, a4]
  read param 1 at [a0, 3*a1 + a3, a2 + a4 + -3]
  read param 2 at [a0, 3*a1 + a3, a2 + a4 + -3]
  reduction sum mul(select(in1, min(r1, r2), 0), r0)
  output param 3 f32[1,4,7] at [a0, a1, a2] = s0
)";

const std::string kPad = R"(region
param input f32[2,3,5]
param output f32[2,6,9]
stage map
  domain [2,6,9]
  read param 0 at [a0, a1 + -1, a2 + -3]
  output param 1 f32[2,6,9] at [a0, a1, a2] = select(in0, r0, 2.5)
)";

const std::string kTranspose = R"(region
param input f32[3,19,21]
param output f32[21,3,19]
stage map
  domain [21,3,19]
  read param 0 at [a1, a2, a0]
  output param 1 f32[21,3,19] at [a0, a1, a2] = r0
)";

const std::string kGather = R"(region
param input f32[10,33]
param input i64[4]
param output f32[4,33]
stage map
  domain [4,33]
  read param 1 at [a0]
  read param 0 at [`max(0:i64, min(9:i64, r0:i64))`, a1]
  output param 2 f32[4,33] at [a0, a1] = r1
)";

const std::string kGatherLanes = R"(region
param input f32[10,33]
param input i64[19]
param output f32[10,19]
stage map
  domain [10,19]
  read param 1 at [a1]
  read param 0 at [a0, `max(0:i64, min(32:i64, r0:i64))`]
  output param 2 f32[10,19] at [a0, a1] = r1
)";

const std::string kReshape = R"(region
param input f32[4,6,5]
param output f32[24,5]
stage map
  domain [24,5]
  read param 0 at [a0/6, a0%6, a1]
  output param 1 f32[24,5] at [a0, a1] = r0
)";

const std::string kCoordinates = R"(region
param output i64[5,19]
stage map
  domain [5,19]
  output param 0 i64[5,19] at [a0, a1] = add(mul(i0, 100:i64), i1)
)";

const std::vector<Case> kCases = {
    {.name = "conv_dense", .region = conv_region({.n = "2", .c = 5, .h = 9, .w = 7, .o = 6})},
    {.name = "conv_dense_stride_2",
     .region = conv_region({.c = 3, .h = 13, .w = 11, .o = 7, .kh = 5, .kw = 3, .stride = 2, .pad = 2})},
    {.name = "conv_groups", .region = conv_region({.c = 8, .h = 6, .w = 6, .o = 12, .group = 4})},
    {.name = "conv_groups_blocked",
     .region = conv_region({.c = 32, .h = 6, .w = 6, .o = 32, .group = 8}),
     .layouts = {"0123/1:16", "", "", "0123/1:16"}},
    {.name = "conv_blocked_dense_weights",
     .region = conv_region({.c = 20, .h = 6, .w = 6, .o = 18}),
     .layouts = {"0123/1:16", "", "", "0123/1:16"}},
    {.name = "conv_unbound_batch",
     .region = conv_region({.n = "n", .c = 3, .h = 5, .w = 5, .o = 4}),
     .bindings = kBatches},
    {.name = "depthwise_dense", .region = conv_region({.c = 5, .h = 9, .w = 7, .o = 5, .group = 5})},
    {.name = "max_pool_dense", .region = pool_region({.c = 5, .h = 9, .w = 7, .stride = 2}, "max")},
    {.name = "sum_pool_dense", .region = pool_region({.c = 5, .h = 9, .w = 7, .stride = 2}, "sum")},
    {.name = "gemm", .region = gemm_region("5", 19, 33)},
    {.name = "gemm_untransposed", .region = gemm_region("5", 19, 33, false)},
    {.name = "gemm_unbound_rows", .region = gemm_region("n", 10, 12), .bindings = kBatches},
    {.name = "layer_norm_rows_7", .region = layer_norm("1", 1, 7, 33)},
    {.name = "layer_norm_rows_8", .region = layer_norm("1", 2, 4, 96)},
    {.name = "layer_norm_rows_19", .region = layer_norm("1", 1, 19, 100)},
    {.name = "layer_norm_wide", .region = layer_norm("1", 1, 5, 3001)},
    {.name = "layer_norm_turned", .region = layer_norm("2", 5, 3, 48, true)},
    {.name = "layer_norm_unbound", .region = layer_norm("n", 3, 5, 40), .bindings = kBatches},
    {.name = "softmax", .region = softmax("3", 37)},
    {.name = "softmax_unbound", .region = softmax("n", 10), .bindings = kBatches},
    {.name = "softmax_large", .region = softmax("1", 1000)},
    {.name = "global_average", .region = global_average("2", 19, 7, 7)},
    {.name = "global_average_blocked", .region = global_average("2", 19, 7, 7), .layouts = {"0123/1:16", "0123/1:16"}},
    {.name = "global_average_unblocking",
     .region = global_average("n", 32, 7, 7),
     .layouts = {"0123/1:16", ""},
     .bindings = kBatches},
    {.name = "concat", .region = kConcat},
    {.name = "concat_blocked", .region = kConcat, .layouts = {"", "0123/1:16", "0123/1:16"}},
    {.name = "pad", .region = kPad},
    {.name = "border_of_two", .region = kBorderOfTwo},
    {.name = "transpose", .region = kTranspose},
    {.name = "gather_rows", .region = kGather},
    {.name = "gather_columns", .region = kGatherLanes},
    {.name = "reshape", .region = kReshape},
    {.name = "coordinates", .region = kCoordinates},
};
OPFUSE_CASES(Generic, kCases);

/// RMSNorm as opset 23 has it: the square of an operand is not a product of two.
std::string rms_norm(int rows, int c) {
  return fmt::format(
      "region\nparam input f32[1,{0},{1}]\nparam constant f32[{1}]\nparam output f32[1,{0},{1}]\nstage row\n"
      "  domain [1,{0},{1}]\n  reduce [{1}]\n  read param 0 at [0, a1, a3]\n  read param 0 at [0, a1, a2]\n"
      "  read param 1 at [a2]\n  reduction sum mul(r0, r0)\n"
      "  output param 2 f32[1,{0},{1}] at [a0, a1, a2] = mul(div(r1, sqrt(add(div(s0, {1}), 0.01))), r2)\n",
      rows, c);
}

/// x - mean, and x scaled twice: three results of each row, stored by a few rows at once.
std::string three_results(int rows, int c) {
  return fmt::format(
      "region\nparam input f32[{0},{1}]\nparam output f32[{0},{1}]\nparam output f32[{0},{1}]\n"
      "param output f32[{0},{1}]\nstage row\n  domain [{0},{1}]\n  reduce [{1}]\n  read param 0 at [a0, a2]\n"
      "  read param 0 at [a0, a1]\n  reduction sum r0\n"
      "  output param 1 f32[{0},{1}] at [a0, a1] = sub(r1, div(s0, {1}))\n"
      "  output param 2 f32[{0},{1}] at [a0, a1] = mul(r1, sub(s0, 1))\n"
      "  output param 3 f32[{0},{1}] at [a0, a1] = mul(r1, 3)\n",
      rows, c);
}

TEST(Rows, of_several_results_are_stored_in_turns) {
  for (const TargetInfo& target : runnable_targets())
    for (const int c : {40, 2000}) check_case(wished("three_results", three_results(15, c)), target);
}

TEST(Rows, of_squares_are_no_contractions) {
  for (const TargetInfo& target : runnable_targets()) {
    const Case c = wished("rms_norm", rms_norm(64, 512));
    EXPECT_EQ(wish_layouts(parse_region(c.region), target).params[0].value_or(Layout::dense(3)), Layout::dense(3));
    EXPECT_EQ(spec_of(c, target).schedule.get("grouped", 0), 0) << spec_of(c, target).schedule.text();
    check_case(c, target);
  }
}

TEST(Rows, of_images_in_blocks_match_the_interpreter) {
  for (const TargetInfo& target : runnable_targets())
    for (int c : {5, 16, 20, 48})
      for (bool turned : {false, true})
        check_case(in_blocks(fmt::format("layer_norm_{}_{}", c, turned), layer_norm("n", 3, 7, c, turned), target),
                   target);
}

}  // namespace
}  // namespace opfuse::test
