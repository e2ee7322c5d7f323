// The shapes and expressions every skeleton is tested with.
#include <cctype>
#include <limits>

#include "codegen/regions.hpp"
#include "cuda/emulated.hpp"

namespace opfuse::test {
namespace {

using Bindings = std::vector<SymbolValues>;
const Bindings kSizes = {{{"n", 1}}, {{"n", 2}}, {{"n", 7}}, {{"n", 37}}};
/// Of rows: short, odd, longer than a block has threads, than registers hold, than shared memory holds.
const Bindings kLengths = {{{"n", 1}}, {{"n", 33}}, {{"n", 300}}, {{"n", 9001}}, {{"n", 25089}}};

/// The expression with every read, result and number of `dtype`.
std::string typed(const std::string& text, const std::string& dtype) {
  if (dtype == "f32") return text;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '.')) ++end;
    const std::string word = text.substr(at, end - at);
    out += word;
    const bool leaf =
        word.size() > 1 && (word[0] == 'r' || word[0] == 's') && std::isdigit(static_cast<unsigned char>(word[1]));
    const bool open = end == text.size() || text[end] != ':';  // of no type yet
    if (open && (leaf || word == "inf" || (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])))))
      out += ":" + dtype;
    if (end == at) out += text[end++];
    at = end;
  }
  return out;
}

}  // namespace

std::string retyped(const std::string& text, const std::string& dtype) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1);
    std::string line = text.substr(at, end + 1 - at);
    for (size_t f = 0; (f = line.find("f32", f)) != std::string::npos; f += dtype.size()) line.replace(f, 3, dtype);
    const size_t reduction = line.find("reduction ");
    const size_t value = reduction != std::string::npos ? line.find(' ', reduction + 10) : line.find(" = ");
    if (value != std::string::npos) line = line.substr(0, value) + typed(line.substr(value), dtype);
    out += line;
    at = end + 1;
  }
  return out;
}

namespace {

std::string map_text(const std::string& shape, const std::string& value, const std::string& dtype = "f32") {
  return fmt::format(
      "region\nparam input {2}{0}\nparam input {2}{0}\nparam output {2}{0}\nstage map\n  domain {0}\n"
      "  read param 0 at [a0, a1]\n  read param 1 at [a0, a1]\n  output param 2 {2}{0} at [a0, a1] = {1}\n",
      shape, typed(value, dtype), dtype);
}

/// y = f(x, per-channel operand) over [n, c, h, w].
std::string channel_text(const std::string& n, int c, int h, int w) {
  return fmt::format(
      "region\nparam input f32[{0},{1},{2},{3}]\nparam constant f32[{1}]\nparam output f32[{0},{1},{2},{3}]\n"
      "stage map\n  domain [{0},{1},{2},{3}]\n  read param 0 at [a0, a1, a2, a3]\n  read param 1 at [a1]\n"
      "  output param 2 f32[{0},{1},{2},{3}] at [a0, a1, a2, a3] = max(add(r0, r1), 0)\n",
      n, c, h, w);
}

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

std::string transposed_text(int m, int n) {
  return fmt::format(
      "region\nparam input f32[{0},{1}]\nparam output f32[{1},{0}]\nstage map\n  domain [{1},{0}]\n"
      "  read param 0 at [a1, a0]\n  output param 1 f32[{1},{0}] at [a0, a1] = mul(r0, 2)\n",
      m, n);
}

std::string pad_text() {
  return "region\nparam input f32[3,5]\nparam output f32[6,9]\nstage map\n  domain [6,9]\n"
         "  read param 0 at [a0 + -1, a1 + -3]\n  output param 1 f32[6,9] at [a0, a1] = select(in0, r0, 1.5)\n";
}

std::string gather_text() {
  return "region\nparam input f32[7,5]\nparam input i64[3]\nparam output f32[3,5]\nstage map\n  domain [3,5]\n"
         "  read param 1 at [a0]\n  read param 0 at [`mod(r0:i64, 7:i64)`, a1]\n"
         "  output param 2 f32[3,5] at [a0, a1] = r1\n";
}

std::string batched_text(const std::string& b, int m, int n, int k) {
  return fmt::format(
      "region\nparam input f32[{0},{1},{3}]\nparam input f32[{0},{3},{2}]\nparam output f32[{0},{1},{2}]\n"
      "stage contraction\n  domain [{0},{1},{2}]\n  reduce [{3}]\n  read param 0 at [a0, a1, a3]\n"
      "  read param 1 at [a0, a3, a2]\n  reduction sum mul(r0, r1)\n"
      "  output param 2 f32[{0},{1},{2}] at [a0, a1, a2] = mul(s0, 0.125)\n",
      b, m, n, k);
}

/// k runs over 16, of which the left operand has 12, guarded; behind those lie the next row's.
std::string guarded_text() {
  return "region\nparam input f32[40,2,12]\nparam input f32[24,16]\nparam output f32[40,24]\nstage contraction\n"
         "  domain [40,24]\n  reduce [16]\n  read param 0 at [a0, 0, a2]\n  read param 1 at [a1, a2]\n"
         "  reduction sum mul(select(in0, r0, 0), r1)\n  output param 2 f32[40,24] at [a0, a1] = s0\n";
}

CudaCase with(CudaCase c, double low, double high) {
  c.low = low;
  c.high = high;
  return c;
}

CudaCase half(const std::string& name, const std::string& region, Bindings bindings = {{}}) {
  return {.name = name, .region = retyped(region, "f16"), .bindings = std::move(bindings), .tolerance = 2e-3};
}

CudaCase bfloat(const std::string& name, const std::string& region) {
  return {.name = name, .region = retyped(region, "bf16"), .tolerance = 1e-2};
}

CudaCase tf32(const std::string& name, const std::string& region, Bindings bindings = {{}}) {
  return {.name = name, .region = retyped(region, "tf32"), .bindings = std::move(bindings), .tolerance = 2e-3};
}

/// f32 results of factors that are rounded to tf32 already.
std::string widened_text(int m, int n, int k) {
  return fmt::format(
      "region\nparam input tf32[{0},{2}]\nparam constant tf32[{1},{2}]\nparam output f32[{0},{1}]\nstage contraction\n"
      "  domain [{0},{1}]\n  reduce [{2}]\n  read param 0 at [a0, a2]\n  read param 1 at [a1, a2]\n"
      "  reduction sum mul(cast<f32>(r0:tf32), cast<f32>(r1:tf32))\n  output param 2 f32[{0},{1}] at [a0, a1] = s0\n",
      m, n, k);
}

/// Numbers halfway between two of tf32, beside that, the largest, denormal ones, NaN; the kernel's rounding is the
/// interpreter's.
CudaCase rounded_to_tf32() {
  std::vector<float> values;
  for (float x : {1.0f, 0x1.004p0f, 0x1.ffcp0f, 0x1.ffcp127f, 0x1p-126f, 0x1p-136f, 3.0f, 0.1f})
    for (float by : {0.0f, 0x1p-11f, 0x1.002p-11f, 0x1.ffep-12f, 0x1p-10f}) {
      values.push_back(x + x * by);
      values.push_back(-(x + x * by));
    }
  for (float x : {0.0f, -0.0f, 0x1p-137f, 0x1.8p-137f, 0x1p-149f, std::numeric_limits<float>::infinity(),
                  std::numeric_limits<float>::quiet_NaN()})
    values.push_back(x);
  const auto n = static_cast<int64_t>(values.size());
  const std::string type = fmt::format("[{}]", n);
  return {.name = "round_to_tf32",
          .region = fmt::format("region\nparam input f32{0}\nparam output tf32{0}\nstage map\n  domain {0}\n"
                                "  read param 0 at [a0]\n  output param 1 tf32{0} at [a0] = cast<tf32>(r0)\n",
                                type),
          .tolerance = 0,
          .given = {{0, Tensor::of(DType::f32, {n}, values)}}};
}

/// A tile of the skeleton: rows, columns, depth, warps' rows and columns, stages.
struct MmaTile {
  int m, n, k, warp, stages;
};
Schedule mma_schedule(const MmaTile& t, int copies, int vector) {
  return {"mma",
          {{"mma_m", t.m},
           {"mma_n", t.n},
           {"mma_k", t.k},
           {"warp", t.warp},
           {"stages", t.stages},
           {"copy_a", copies / 2},
           {"copy_b", copies % 2},
           {"vector", vector}}};
}

/// The tile sizes and ways of copying that one shape does not choose, all on one convolution.
void add_tensor_core_schedules(std::vector<CudaCase>& cases) {
  for (const MmaTile& tile : {MmaTile{64, 64, 64, 32, 3}, {128, 64, 32, 64, 4}, {128, 128, 32, 64, 4}})
    for (int copies = 0; copies < 4; ++copies)
      for (int vector : {1, 8})
        cases.push_back({.name = fmt::format("conv_half_{}x{}_{}{}_{}", tile.m, tile.n, copies / 2, copies % 2, vector),
                         .region = retyped(conv_region({.c = 24, .h = 5, .w = 5, .o = 24}), "f16"),
                         .schedule = mma_schedule(tile, copies, vector),
                         .tolerance = 2e-3});
}

/// Steps that stay within a tap of the window: a thread has several chunks of a row, borders and jumps count steps.
/// Rows are equally far apart or not, ragged, the window dilated; the depth of a step is chosen, or twice that.
void add_windows_of_whole_steps(std::vector<CudaCase>& cases) {
  cases.push_back(half("conv_half_taps", conv_region({.c = 64, .h = 9, .w = 9, .o = 72})));
  cases.push_back(half("conv_half_taps_deep", conv_region({.c = 128, .h = 13, .w = 5, .o = 40, .stride = 2})));
  cases.push_back(half("conv_half_taps_dilated",
                       conv_region({.n = "2", .c = 64, .h = 7, .w = 6, .o = 24, .pad = 2, .dilation = 2})));
  cases.push_back(tf32("conv_tf32_taps", conv_region({.c = 32, .h = 6, .w = 7, .o = 24, .kh = 1, .kw = 5, .pad = 2})));
  const auto add = [&](const char* what, const Conv& conv, const MmaTile& tile) {
    cases.push_back(half(fmt::format("conv_half_taps_{}_{}x{}", what, tile.m, tile.n), conv_region(conv)));
    cases.back().schedule = mma_schedule(tile, 3, 8);
  };
  add("even", {.c = 32, .h = 12, .w = 11, .o = 72}, {128, 64, 32, 64, 4});
  add("strided", {.n = "3", .c = 64, .h = 13, .w = 15, .o = 40, .stride = 2}, {128, 64, 32, 64, 4});
  add("bare", {.c = 64, .h = 9, .w = 14, .o = 136, .pad = 0}, {128, 128, 32, 64, 4});
}

/// Stems: rows that a thread gathers, more taps than 32, ragged, unpadded.
void add_gathered_rows(std::vector<CudaCase>& cases) {
  const auto add = [&](CudaCase c, const MmaTile& tile, int vector) {
    c.schedule = mma_schedule(tile, 0, vector);
    cases.push_back(std::move(c));
  };
  const Conv stem = {.n = "3", .c = 3, .h = 15, .w = 13, .o = 72, .kh = 7, .kw = 7, .stride = 2, .pad = 3};
  add(half("conv_half_stem_gathered", conv_region(stem)), {128, 64, 32, 64, 4}, 8);
  const Conv patches = {.n = "7", .c = 3, .h = 20, .w = 24, .o = 40, .kh = 4, .kw = 4, .stride = 4, .pad = 0};
  add(half("conv_half_patches_gathered", conv_region(patches)), {128, 128, 32, 64, 4}, 8);
  const Conv wide = {.c = 3, .h = 12, .w = 17, .o = 20, .kh = 5, .kw = 5, .stride = 2, .pad = 2};
  add(tf32("conv_tf32_stem_gathered", conv_region(wide)), {128, 64, 16, 64, 4}, 4);
}

void add_tf32_schedules(std::vector<CudaCase>& cases) {
  const auto add = [&](const MmaTile& tile, int copies, int vector) {
    cases.push_back({.name = fmt::format("conv_tf32_{}x{}_{}{}_{}", tile.m, tile.n, copies / 2, copies % 2, vector),
                     .region = retyped(conv_region({.c = 12, .h = 5, .w = 5, .o = 20}), "tf32"),
                     .schedule = mma_schedule(tile, copies, vector),
                     .tolerance = 2e-3});
  };
  for (const MmaTile& tile : {MmaTile{64, 64, 32, 32, 3}, {128, 64, 16, 64, 4}, {128, 128, 16, 64, 4}}) add(tile, 3, 4);
  add({64, 64, 32, 32, 3}, 0, 1);
  add({128, 64, 16, 64, 4}, 1, 4);
  add({128, 128, 16, 64, 4}, 2, 1);
}

/// Columns of a thread that small images do not choose: ragged, strided and dilated ones.
void add_depthwise_schedules(std::vector<CudaCase>& cases) {
  for (int columns : {4, 7, 8}) {
    const auto add = [&](const char* what, const Conv& conv) {
      CudaCase c = half(fmt::format("depthwise_{}_{}", what, columns), conv_region(conv));
      c.schedule = {"depthwise", {{"columns", columns}, {"block", 128}}};
      cases.push_back(c);
    };
    add("ragged", {.c = 16, .h = 6, .w = 9, .o = 16, .group = 16, .residual = true});
    add("wide", {.c = 8, .h = 5, .w = 16, .o = 8, .kh = 7, .kw = 7, .pad = 3, .group = 8});
    add("strided", {.c = 24, .h = 9, .w = 15, .o = 24, .stride = 2, .group = 24});
    add("dilated", {.c = 8, .h = 9, .w = 11, .o = 8, .pad = 2, .dilation = 2, .group = 8});
    add("unpadded", {.c = 8, .h = 5, .w = 13, .o = 8, .kh = 3, .kw = 5, .pad = 0, .group = 8});
  }
}

/// Every tile of the skeleton without tensor cores.
void add_tile_schedules(std::vector<CudaCase>& cases) {
  for (int per : {2, 4, 8})
    for (int depth : {8, 16})
      cases.push_back(
          {.name = fmt::format("gemm_{}_{}", per, depth),
           .region = gemm_region("37", 29, 21),
           .schedule = {
               "tiles",
               {{"tile_m", 16 * per}, {"tile_n", 16 * per}, {"tile_k", depth}, {"per_m", per}, {"per_n", per}}}});
}

}  // namespace

const std::vector<CudaCase>& tensor_core_cases() {
  static const std::vector<CudaCase> cases = {
      half("gemm_half", gemm_region("64", 64, 64)),
      half("gemm_half_odd", gemm_region("37", 53, 71)),
      half("gemm_half_8", gemm_region("100", 72, 136)),
      half("gemm_half_deep", gemm_region("37", 53, 811)),
      half("gemm_half_five", gemm_region("50", 40, 320)),
      half("conv_half_deep", conv_region({.c = 32, .h = 9, .w = 9, .o = 40})),
      half("conv_half_deep_odd", conv_region({.c = 27, .h = 11, .w = 7, .o = 45, .stride = 2})),
      half("gemm_half_untransposed", gemm_region("50", 40, 40, false)),
      half("gemm_half_open", gemm_region("n", 24, 24), kSizes),
      half("gemm_half_large", gemm_region("200", 130, 96)),
      half("gemm_half_guarded", guarded_text()),
      half("batched_half", batched_text("3", 17, 24, 16)),
      half("conv_half", conv_region({.c = 16, .h = 9, .w = 9, .o = 24})),
      half("conv_half_odd", conv_region({.c = 5, .h = 11, .w = 7, .o = 13, .stride = 2})),
      half("conv_half_1x1",
           conv_region({.c = 24, .h = 7, .w = 7, .o = 32, .kh = 1, .kw = 1, .pad = 0, .residual = true})),
      half("conv_half_stem", conv_region({.c = 3, .h = 15, .w = 15, .o = 8, .kh = 7, .kw = 7, .stride = 2, .pad = 3})),
      half("conv_half_groups", conv_region({.c = 16, .h = 6, .w = 6, .o = 32, .group = 2})),
      half("conv_half_dilated", conv_region({.c = 8, .h = 10, .w = 10, .o = 16, .pad = 2, .dilation = 2})),
      half("conv_half_open", conv_region({.n = "n", .c = 8, .h = 5, .w = 5, .o = 8}), kSizes),
      bfloat("gemm_bfloat", gemm_region("64", 64, 64)),
      bfloat("conv_bfloat", conv_region({.c = 16, .h = 9, .w = 9, .o = 24, .residual = true})),
      half("gemm_half_least", gemm_region("8", 8, 8)),
      half("gemm_half_prime", gemm_region("11", 13, 17)),
      half("conv_half_least", conv_region({.c = 8, .h = 3, .w = 3, .o = 8})),
      half("conv_half_prime", conv_region({.c = 7, .h = 13, .w = 11, .o = 17, .kh = 5, .kw = 3})),
      bfloat("gemm_bfloat_prime", gemm_region("67", 29, 31)),
      bfloat("conv_bfloat_odd", conv_region({.c = 5, .h = 11, .w = 7, .o = 13, .stride = 2})),
      {.name = "gemm_half_128",
       .region = retyped(gemm_region("130", 72, 168), "f16"),
       .schedule = mma_schedule({128, 64, 32, 64, 4}, 3, 8),
       .tolerance = 2e-3},
      {"gemm_tf32", widened_text(64, 64, 64)},
      {"gemm_tf32_8", widened_text(100, 72, 68)},
      tf32("gemm_tf32_odd", gemm_region("37", 53, 71)),
      tf32("gemm_tf32_open", gemm_region("n", 24, 24), kSizes),
      tf32("conv_tf32", conv_region({.c = 12, .h = 9, .w = 9, .o = 24, .stride = 2, .residual = true})),
      tf32("conv_tf32_stem", conv_region({.c = 3, .h = 15, .w = 15, .o = 8, .kh = 7, .kw = 7, .stride = 2, .pad = 3})),
  };
  static const std::vector<CudaCase> all = [] {
    std::vector<CudaCase> list = cases;
    add_tensor_core_schedules(list);
    add_windows_of_whole_steps(list);
    add_gathered_rows(list);
    add_tf32_schedules(list);
    return list;
  }();
  return all;
}

const std::vector<CudaCase>& map_cases() {
  static const std::vector<CudaCase> cases = {
      {"add_relu", map_text("[16,64]", "max(add(r0, r1), 0)")},
      {"odd", map_text("[3,37]", "mul(tanh(r0), exp(r1))")},
      {"one_element", map_text("[1,1]", "sub(r0, r1)")},
      {"open", map_text("[n,13]", "select(lt(r0, r1), sqrt(abs(r0)), erf(r1))"), kSizes},
      {"open_even", map_text("[n,16]", "min(max(r0, -0.5), 0.5)"), kSizes},
      {"many_functions", map_text("[5,7]", "add(add(sin(r0), cos(r1)), floor(mul(r0, 10)))")},
      with({"powers", map_text("[4,12]", "pow(r0, r1)")}, 0.1, 2),
      {"channels", channel_text("2", 6, 5, 7)},
      {"channels_open", channel_text("n", 3, 4, 4), kSizes},
      {"transposed", transposed_text(19, 33)},
      {"padded", pad_text()},
      {"gathered", gather_text()},
      {"integers", map_text("[5,9]", "add(mul(r0, r1), div(r0, r1))", "i32")},
      {"bytes", map_text("[6,16]", "add(r0, r1)", "i8")},
      {"long", map_text("[3,5]", "mod(r0, r1)", "i64")},
      {"double", map_text("[3,8]", "exp(mul(r0, r1))", "f64")},
      {"one_long", map_text("[1,1]", "add(r0, r1)", "i64")},
      {.name = "half_one", .region = map_text("[1,1]", "add(r0, r1)", "f16"), .tolerance = 2e-3},
      {.name = "bfloat_prime", .region = map_text("[7,13]", "sub(mul(r0, r1), r1)", "bf16"), .tolerance = 1e-2},
      {"double_vector", map_text("[4,6]", "mul(r0, r1)", "f64")},
      {.name = "half", .region = map_text("[8,24]", "add(mul(r0, r1), r0)", "f16"), .tolerance = 2e-3},
      {.name = "half_odd", .region = map_text("[5,7]", "exp(r0)", "f16"), .tolerance = 2e-3},
      {.name = "bfloat", .region = map_text("[8,24]", "max(add(r0, r1), 0)", "bf16"), .tolerance = 1e-2},
      rounded_to_tf32(),
  };
  return cases;
}

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

const std::vector<CudaCase>& window_cases() {
  static const std::vector<CudaCase> cases = {
      {"depthwise", conv_region({.c = 32, .h = 14, .w = 14, .o = 32, .group = 32})},
      {"depthwise_strided", conv_region({.c = 5, .h = 15, .w = 17, .o = 5, .stride = 2, .group = 5})},
      {"depthwise_5x5", conv_region({.c = 3, .h = 7, .w = 7, .o = 3, .kh = 5, .kw = 5, .pad = 2, .group = 3})},
      {"depthwise_dilated", conv_region({.c = 4, .h = 9, .w = 11, .o = 4, .pad = 2, .dilation = 2, .group = 4})},
      {"depthwise_residual",
       conv_region({.c = 19, .h = 9, .w = 9, .o = 19, .group = 19, .residual = true, .activation = "exp({})"})},
      {"depthwise_open", conv_region({.n = "n", .c = 7, .h = 9, .w = 9, .o = 7, .group = 7}), kSizes},
      {"depthwise_one", conv_region({.c = 2, .h = 1, .w = 1, .o = 2, .group = 2})},
      half("depthwise_half", conv_region({.c = 16, .h = 9, .w = 9, .o = 16, .group = 16})),
      half("depthwise_half_prime", conv_region({.c = 13, .h = 7, .w = 5, .o = 13, .stride = 2, .group = 13})),
      bfloat("depthwise_bfloat",
             conv_region({.c = 24, .h = 5, .w = 7, .o = 24, .kh = 5, .kw = 5, .pad = 2, .group = 24})),
      {"max_pool_one", pool_region({.c = 1, .h = 1, .w = 1}, "max")},
      half("max_pool_half", pool_region({.c = 7, .h = 13, .w = 11, .stride = 2}, "max")),
      half("mean_pool_half", pool_region({.c = 8, .h = 7, .w = 7, .kh = 7, .kw = 7, .pad = 0}, "sum")),
      {"max_pool", pool_region({.c = 8, .h = 15, .w = 13, .stride = 2}, "max")},
      {"max_pool_2x2", pool_region({.c = 3, .h = 10, .w = 10, .kh = 2, .kw = 2, .stride = 2, .pad = 0}, "max")},
      {"mean_pool", pool_region({.c = 5, .h = 9, .w = 9}, "sum")},
      {"min_pool", pool_region({.c = 3, .h = 9, .w = 9, .stride = 2, .pad = 0}, "min")},
  };
  static const std::vector<CudaCase> all = [] {
    std::vector<CudaCase> list = cases;
    add_depthwise_schedules(list);
    return list;
  }();
  return all;
}

const std::vector<CudaCase>& contraction_cases() {
  static const std::vector<CudaCase> cases = {
      {"gemm", gemm_region("64", 64, 64)},
      {"gemm_odd", gemm_region("37", 53, 71)},
      {"gemm_least", gemm_region("4", 4, 1)},
      {"gemm_prime", gemm_region("13", 17, 19)},
      {"gemm_one", gemm_region("1", 1, 1)},
      half("gemm_half_tiles", gemm_region("5", 7, 3)),
      half("gemm_half_vector", gemm_region("1", 37, 130)),
      bfloat("gemm_bfloat_tiles", gemm_region("7", 11, 13)),
      {"conv_one", conv_region({.c = 1, .h = 1, .w = 1, .o = 1})},
      {"conv_prime", conv_region({.c = 3, .h = 13, .w = 11, .o = 17, .kh = 5, .kw = 3})},
      {"gemm_untransposed", gemm_region("50", 33, 40, false)},
      {"gemm_open", gemm_region("n", 24, 19), kSizes},
      {"gemm_vector", gemm_region("1", 40, 130)},
      {"gemm_vector_untransposed", gemm_region("1", 130, 40, false)},
      {.name = "gemm_large_tiles",
       .region = gemm_region("150", 140, 40),
       .schedule = {"tiles", {{"tile_m", 128}, {"tile_n", 128}, {"tile_k", 16}, {"per_m", 8}, {"per_n", 8}}}},
      {"batched", batched_text("3", 17, 20, 9)},
      {"batched_deep", batched_text("3", 17, 20, 39)},
      {"batched_open", batched_text("n", 8, 8, 16), kSizes},
      {"conv", conv_region({.c = 8, .h = 9, .w = 9, .o = 16})},
      {"conv_odd", conv_region({.c = 5, .h = 11, .w = 7, .o = 13, .stride = 2})},
      {"conv_1x1", conv_region({.c = 24, .h = 7, .w = 7, .o = 20, .kh = 1, .kw = 1, .pad = 0, .residual = true})},
      {"conv_7x7", conv_region({.c = 3, .h = 15, .w = 15, .o = 8, .kh = 7, .kw = 7, .stride = 2, .pad = 3})},
      {"conv_groups", conv_region({.c = 12, .h = 6, .w = 6, .o = 18, .group = 3})},
      {"conv_groups_many", conv_region({.c = 16, .h = 5, .w = 5, .o = 32, .group = 8})},
      {"conv_dilated", conv_region({.c = 6, .h = 10, .w = 10, .o = 7, .pad = 2, .dilation = 2})},
      {"conv_open", conv_region({.n = "n", .c = 4, .h = 5, .w = 5, .o = 6}), kSizes},
  };
  static const std::vector<CudaCase> all = [] {
    std::vector<CudaCase> list = cases;
    add_tile_schedules(list);
    return list;
  }();
  return all;
}

}  // namespace opfuse::test
