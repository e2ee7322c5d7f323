// A depthwise convolution and the LayerNorm of its channels as one kernel: channels around a vector, a warp and a
// block, columns that do not divide the image, strides, open batches, residuals, results in both orders.
#include <fmt/format.h>

#include "cuda/emulated.hpp"

namespace opfuse::test {
namespace {

struct Norm {
  std::string n = "1";
  int c = 16, h = 5, w = 7, taps = 3, stride = 1;
  bool channels_first = false;  ///< results as images
  std::string value = "add(s0, r2)";
};

/// (x - mean) / sqrt(variance + epsilon) * weight + bias of every pixel's channels.
std::string norm_text(const Norm& v) {
  const int pad = v.taps / 2, p = (v.h + 2 * pad - v.taps) / v.stride + 1, q = (v.w + 2 * pad - v.taps) / v.stride + 1;
  const std::string pixels = fmt::format("[{},{},{},{}]", v.n, v.c, p, q),
                    rows = fmt::format("[{},{},{},{}]", v.n, p, q, v.c);
  const auto slide = [&](int axis, int tap) { return fmt::format("{}*a{} + 1*a{} + {}", v.stride, axis, tap, -pad); };
  const std::string mean = fmt::format("mul(s0, {})", 1.0 / v.c), centred = fmt::format("sub(r0, {})", mean);
  std::string text = fmt::format(
      "region\nparam input f32[{0},{1},{2},{3}]\nparam constant f32[{1},1,{4},{4}]\nparam constant f32[{1}]\n"
      "param constant f32[{1}]\nparam constant f32[{1}]\nparam output f32{5}\n",
      v.n, v.c, v.h, v.w, v.taps, v.channels_first ? pixels : rows);
  text += fmt::format(
      "stage window\n  domain {0}\n  reduce [{1},{1}]\n  read param 0 at [a0, a1, {2}, {3}]\n"
      "  read param 1 at [a1, 0, a4, a5]\n  read param 2 at [a1]\n  reduction sum mul(select(in0, r0, 0), r1)\n"
      "  output local f32{0} at [a0, a1, a2, a3] = {4}\n",
      pixels, v.taps, slide(2, 4), slide(3, 5), v.value);
  text += fmt::format(
      "stage row\n  domain {0}\n  reduce [{1}]\n  read stage 0.0 at [a0, a4, a1, a2]\n"
      "  read stage 0.0 at [a0, a3, a1, a2]\n  read param 3 at [a3]\n  read param 4 at [a3]\n  reduction sum r0\n"
      "  reduction sum mul({2}, {2})\n  output param 5 f32{3} at [{4}] = "
      "add(mul(div(sub(r1, {5}), sqrt(add(mul(s1, {6}), 0.00001))), r2), r3)\n",
      rows, v.c, centred, v.channels_first ? pixels : rows, v.channels_first ? "a0, a3, a1, a2" : "a0, a1, a2, a3",
      mean, 1.0 / v.c);
  return text;
}

void add(std::vector<CudaCase>& all, const std::string& name, const Norm& v,
         std::vector<SymbolValues> bindings = {{}}) {
  for (const char* type : {"f32", "f16"}) {
    CudaCase c{.name = fmt::format("norm_{}_{}", name, type), .region = norm_text(v), .bindings = bindings};
    if (std::string(type) != "f32") c.region = retyped(c.region, type), c.tolerance = 4e-3;
    all.push_back(c);
  }
}

std::vector<CudaCase> make_cases() {
  std::vector<CudaCase> all;
  add(all, "plain", {});
  add(all, "convnext", {.c = 96, .h = 8, .w = 14, .taps = 7});
  add(all, "deep", {.c = 264, .h = 3, .w = 5});
  add(all, "deepest", {.c = 776, .h = 2, .w = 3});
  add(all, "odd", {.n = "2", .c = 13, .h = 4, .w = 9});
  add(all, "one", {.c = 1, .h = 3, .w = 3});
  add(all, "pairs", {.c = 6, .h = 3, .w = 5});
  add(all, "strided", {.n = "2", .c = 24, .h = 7, .w = 11, .stride = 2});
  add(all, "images", {.c = 40, .h = 4, .w = 6, .channels_first = true});
  add(all, "activated", {.c = 32, .h = 4, .w = 8, .value = "max(add(s0, r2), 0)"});
  add(all, "open", {.n = "n", .c = 16, .h = 3, .w = 5}, {{{"n", 1}}, {{"n", 3}}});
  all.push_back({.name = "norm_bf16", .region = retyped(norm_text({.c = 48}), "bf16"), .tolerance = 2e-2});
  return all;
}

}  // namespace

const std::vector<CudaCase>& window_rows_cases() {
  static const std::vector<CudaCase> all = make_cases();
  return all;
}

}  // namespace opfuse::test
