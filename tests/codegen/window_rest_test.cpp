// Windows whose sums rest until their rows are done: row widths, rows that end a group early, parts, what reads and
// stores beside them, and which windows have no such rows.
#include "codegen/chain_regions.hpp"
#include "codegen/run_kernel.hpp"

namespace opfuse::test {
namespace {

const std::string kSilu = "div({0}, add(1, exp(neg({0}))))";
const std::vector<SymbolValues> kBatches = {{{"n", 1}}, {{"n", 2}}, {{"n", 17}}};

Conv silu(int c, int h, int w, Conv v = {}) {
  v.c = v.o = v.group = c, v.h = h, v.w = w;
  if (v.activation == Conv{}.activation) v.activation = kSilu;
  return v;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Rows of 7, or columns: 91 of them stand for a symbol.
std::string open_rows() { return replaced(conv_region(silu(20, 91, 7)), "91,", "h,"); }
std::string open_columns() { return replaced(conv_region(silu(20, 7, 91)), "91]", "w]"); }

/// Both the sum and a function of it are stored.
std::string two_outputs(int c, int h, int w) {
  std::string text = conv_region(silu(c, h, w));
  const std::string shape = fmt::format("f32[1,{},{},{}]", c, h, w);
  text.insert(text.find("stage"), "param output " + shape + "\n");
  return text + "  output param 4 " + shape + " at [a0, a1, a2, a3] = max(add(s0, r2), 0)\n";
}

/// A window of 3 along `w`; `outer` are axes before it that it does not slide over ("" or "h,").
std::string row_window(int c, const std::string& outer, int w) {
  const std::string shape = fmt::format("f32[2,{},{}{}]", c, outer, w);
  const std::string at = outer.empty() ? "a0, a1, " : "a0, a1, a2, ";
  const int pixel = outer.empty() ? 2 : 3;
  return fmt::format(
      "region\nparam input {0}\nparam constant f32[{1},3]\nparam output {0}\nstage window\n  domain {2}\n"
      "  reduce [3]\n  read param 0 at [{3}a{4} + a{5} + -1]\n  read param 1 at [a1, a{5}]\n"
      "  reduction sum mul(select(in0, r0, 0), r1)\n  output param 2 {0} at [{3}a{4}] = div(s0, add(1, "
      "exp(neg(s0))))\n",
      shape, c, shape.substr(3), at, pixel, pixel + 1);
}

std::string pool(const Conv& v, const std::string& kind, const std::string& value) {
  const std::string text = pool_region(v, kind);
  return text.substr(0, text.rfind(" = ") + 3) + value + "\n";
}

Pair chain_of(int c, int h, int w, int o, Conv second) {
  second.activation = kSilu;
  return sized(c, h, w, o, second);
}

const std::vector<Case> kRests = {
    wished("one_column", conv_region(silu(16, 120, 1))),
    wished("one_pixel", conv_region(silu(16, 1, 1))),
    wished("two_pixels", conv_region(silu(16, 2, 1))),
    wished("seven", conv_region(silu(32, 7, 7))),
    wished("seven_last_row_alone", conv_region(silu(16, 113, 7))),
    wished("thirteen", conv_region(silu(16, 13, 13))),
    wished("seventeen_one_by_one", conv_region(silu(16, 17, 17))),
    wished("twenty_three_last_rows_fewer", conv_region(silu(16, 11, 23))),
    wished("twenty_eight", conv_region(silu(16, 28, 28))),
    wished("row_as_long_as_the_rest", conv_region(silu(16, 5, 112))),
    wished("row_longer_than_the_rest", conv_region(silu(16, 5, 113))),
    wished("longest_row", conv_region(silu(16, 3, 256))),
    wished("too_long_a_row", conv_region(silu(16, 3, 257))),
    wished("one_row", conv_region(silu(16, 1, 28))),
    wished("one_tile", conv_region(silu(16, 1, 7))),
    wished("five_taps", conv_region(silu(16, 30, 14, {.kh = 5, .kw = 5, .pad = 2}))),
    wished("nine_taps", conv_region(silu(16, 30, 14, {.kh = 9, .kw = 9, .pad = 4}))),
    wished("no_padding", conv_region(silu(16, 30, 16, {.pad = 0}))),
    wished("dilated", conv_region(silu(16, 30, 14, {.pad = 2, .dilation = 2}))),
    wished("stride_2", conv_region(silu(16, 57, 57, {.stride = 2}))),
    wished("stride_2_even", conv_region(silu(16, 56, 14, {.kh = 5, .kw = 5, .stride = 2, .pad = 2}))),
    wished("ragged_channels", conv_region(silu(37, 19, 14))),
    wished("fewer_channels_than_lanes", conv_region(silu(3, 19, 14))),
    wished("without_bias", conv_region(silu(16, 19, 14, {.bias = false}))),
    wished("residual", conv_region(silu(19, 19, 14, {.residual = true}))),
    wished("tanh", conv_region(silu(16, 19, 14, {.activation = "tanh({0})"}))),
    wished("two_outputs", two_outputs(20, 19, 14)),
    wished("images", conv_region(silu(24, 19, 14, {.n = "3"}))),
    wished("images_unbound", conv_region(silu(24, 19, 14, {.n = "n"})), kBatches),
    wished("rows_unbound", open_rows(), {{{"h", 1}}, {{"h", 16}}, {{"h", 17}}, {{"h", 50}}}),
    wished("columns_unbound", open_columns(), {{{"w", 1}}, {{"w", 7}}, {{"w", 60}}}),
    wished("no_rows", row_window(20, "", 40)),
    wished("no_rows_one_tile", row_window(20, "", 5)),
    wished("rows_without_taps", row_window(20, "9,", 40)),
    wished("max_pool", pool({.c = 19, .h = 19, .w = 14}, "max", "div(s0, add(1, exp(neg(s0))))")),
    wished("max_pool_stride_2", pool({.c = 16, .h = 57, .w = 29, .stride = 2}, "max", "tanh(s0)")),
    wished("average_pool", pool({.c = 16, .h = 19, .w = 14}, "sum", "exp(div(s0, 9))")),
    wished("chain_narrow", chain_region(chain_of(16, 40, 7, 48, {}))),
    wished("chain_stride_2", chain_region(chain_of(16, 56, 28, 48, {.stride = 2}))),
};
OPFUSE_CASES(WindowRest, kRests);

TEST(WindowRests, in_rows_of_any_part) {
  for (const TargetInfo& target : runnable_targets())
    for (const int64_t parts_p : {1, 2, 5, 37})
      for (const int64_t parts_o : {1, 3}) {
        const Case c = wished("parts", conv_region(silu(40, 37, 7, {.n = "2"})));
        KernelSpec spec = spec_of(c, target);
        spec.schedule.set("parts_p", parts_p);
        spec.schedule.set("parts_o", parts_o);
        check_spec(c, spec, target);
      }
}

const TargetInfo kTarget = [] {
  TargetInfo target = parse_target("cpu:avx512");
  target.l1_bytes = 48 << 10;
  return target;
}();

std::string code_of(const std::string& region) {
  CodegenOptions options;
  options.emit_llvm = true;
  return generate({spec_of(wished("", region), kTarget)}, kTarget, options).kernels.at(0).llvm_ir;
}

/// Vectors in the array that the kernel keeps on its stack, 0: none.
int resting(const std::string& region) {
  const std::string code = code_of(region);
  const size_t x = code.find(" x <16 x float>], align");
  if (x == std::string::npos) return 0;
  const size_t alloca = code.rfind("alloca [", x);
  return alloca == std::string::npos ? 0 : std::stoi(code.substr(alloca + 8, x - alloca - 8));
}

TEST(WindowRests, as_many_whole_rows_as_stay_in_the_cache) {
  EXPECT_EQ(resting(conv_region(silu(16, 28, 28))), 112);
  EXPECT_EQ(resting(conv_region(silu(16, 113, 7))), 112);
  EXPECT_EQ(resting(conv_region(silu(16, 20, 23))), 92);
  EXPECT_EQ(resting(conv_region(silu(16, 7, 7))), 49) << "all of them";
  EXPECT_EQ(resting(conv_region(silu(16, 5, 113))), 113) << "one row at least";
  EXPECT_EQ(resting(conv_region(silu(16, 3, 256))), 256);
  EXPECT_EQ(resting(conv_region(silu(16, 1, 28))), 28);
  EXPECT_EQ(resting(row_window(16, "", 40)), 40);
  EXPECT_EQ(resting(open_rows()), 112);
}

TEST(WindowRests, nowhere_else) {
  const auto none = [](const std::string& why, const std::string& region) { EXPECT_EQ(resting(region), 0) << why; };
  none("no function", conv_region(silu(16, 28, 28, {.activation = "min(max({}, 0), 6)"})));
  none("erf is looked up", conv_region(silu(16, 28, 28, {.activation = "mul({0}, erf({0}))"})));
  none("one tile", conv_region(silu(16, 1, 7)));
  none("a row that does not stay in the cache", conv_region(silu(16, 3, 257)));
  none("a row of any length", open_columns());
  none("no function behind pooling", pool_region({.c = 16, .h = 28, .w = 28}, "max"));
}

TEST(WindowRests, rows_to_come_are_asked_for_where_a_map_passes_the_cache) {
  const auto asks = [](const std::string& region) {
    return code_of(region).find("llvm.prefetch") != std::string::npos;
  };
  EXPECT_TRUE(asks(conv_region(silu(16, 28, 28))));
  EXPECT_TRUE(asks(open_rows()));
  EXPECT_FALSE(asks(conv_region(silu(16, 19, 19))));
  EXPECT_FALSE(asks(row_window(16, "", 240))) << "no row to come";
}

}  // namespace
}  // namespace opfuse::test
