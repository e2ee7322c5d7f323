// Region texts of the usual operators, as lowering writes them.
#pragma once

#include <fmt/format.h>

#include <string>

namespace opfuse::test {

/// A convolution of relu(x * scale + 0.5): outside the image there are zeros, not what the prologue makes of them.
inline const std::string kPrologue = R"(region
param input f32[1,20,9,9]
param constant f32[32,20,3,3]
param constant f32[20]
param output f32[1,32,9,9]
stage contraction
  domain [1,32,9,9]
  reduce [20,3,3]
  read param 0 at [a0, a4, a2 + a5 + -1, a3 + a6 + -1]
  read param 1 at [a1, a4, a5, a6]
  read param 2 at [a4]
  reduction sum mul(select(in0, max(add(mul(r0, r2), 0.5), 0), 0), r1)
  output param 3 f32[1,32,9,9] at [a0, a1, a2, a3] = s0
)";

struct Conv {
  std::string n = "1";
  int c = 16, h = 8, w = 8, o = 16, kh = 3, kw = 3, stride = 1, pad = 1, dilation = 1, group = 1;
  bool bias = true, residual = false;
  std::string activation = "max({}, 0)";
};

inline int conv_extent(int in, int k, const Conv& v) {
  return (in + 2 * v.pad - v.dilation * (k - 1) - 1) / v.stride + 1;
}

inline std::string sliding(int axis, int tap, const Conv& v) {
  return fmt::format("{}*a{} + {}*a{} + {}", v.stride, axis, v.dilation, tap, -v.pad);
}

inline std::string conv_region(const Conv& v) {
  const int p = conv_extent(v.h, v.kh, v), q = conv_extent(v.w, v.kw, v), cg = v.c / v.group;
  const bool depthwise = v.group > 1 && v.group == v.c && v.o == v.c;
  const std::string y = fmt::format("[{},{},{},{}]", v.n, v.o, p, q);
  std::string text = fmt::format("region\nparam input f32[{},{},{},{}]\nparam constant f32[{},{},{},{}]\n", v.n, v.c,
                                 v.h, v.w, v.o, cg, v.kh, v.kw);
  if (v.bias) text += fmt::format("param constant f32[{}]\n", v.o);
  if (v.residual) text += "param input f32" + y + "\n";
  text += "param output f32" + y + "\n";
  const int first = depthwise ? 4 : 5;
  text += fmt::format("stage {}\n  domain {}\n", depthwise ? "window" : "contraction", y);
  text +=
      depthwise ? fmt::format("  reduce [{},{}]\n", v.kh, v.kw) : fmt::format("  reduce [{},{},{}]\n", cg, v.kh, v.kw);
  const std::string channel = depthwise ? "a1" : v.group > 1 ? fmt::format("{}*a1/{} + a4", cg, v.o / v.group) : "a4";
  text += fmt::format("  read param 0 at [a0, {}, {}, {}]\n", channel, sliding(2, first, v), sliding(3, first + 1, v));
  text += fmt::format("  read param 1 at [a1, {}, a{}, a{}]\n", depthwise ? "0" : "a4", first, first + 1);
  int param = 2;
  std::string value = "s0";
  if (v.bias) text += fmt::format("  read param {} at [a1]\n", param++), value = "add(s0, r2)";
  if (v.residual) {
    text += fmt::format("  read param {} at [a0, a1, a2, a3]\n", param);
    value = fmt::format("add({}, r{})", value, param++);
  }
  text += fmt::format("  reduction sum mul({}, r1)\n", v.pad > 0 ? "select(in0, r0, 0)" : "r0");
  return text + fmt::format("  output param {} f32{} at [a0, a1, a2, a3] = {}\n", param, y,
                            fmt::format(fmt::runtime(v.activation), value));
}

/// max or average (sum) pooling; `pad` taps are the identity.
inline std::string pool_region(const Conv& v, const std::string& kind) {
  const int p = conv_extent(v.h, v.kh, v), q = conv_extent(v.w, v.kw, v);
  const std::string y = fmt::format("[{},{},{},{}]", v.n, v.c, p, q);
  const std::string fill = kind == "max" ? "-inf" : "0";
  return fmt::format(
      "region\nparam input f32[{},{},{},{}]\nparam output f32{}\nstage window\n  domain {}\n  reduce [{},{}]\n"
      "  read param 0 at [a0, a1, {}, {}]\n  reduction {} {}\n  output param 1 f32{} at [a0, a1, a2, a3] = {}\n",
      v.n, v.c, v.h, v.w, y, y, v.kh, v.kw, sliding(2, 4, v), sliding(3, 5, v), kind,
      v.pad > 0 ? "select(in0, r0, " + fill + ")" : "r0", y,
      kind == "max" ? "s0" : fmt::format("div(s0, {})", v.kh * v.kw));
}

inline std::string gemm_region(const std::string& m, int n, int k, bool transposed = true) {
  return fmt::format(
      "region\nparam input f32[{0},{2}]\nparam constant f32[{3},{4}]\nparam constant f32[{1}]\nparam output "
      "f32[{0},{1}]\n"
      "stage contraction\n  domain [{0},{1}]\n  reduce [{2}]\n  read param 0 at [a0, a2]\n  read param 1 at [{5}]\n"
      "  read param 2 at [a1]\n  reduction sum mul(r0, r1)\n  output param 3 f32[{0},{1}] at [a0, a1] = add(s0, r2)\n",
      m, n, k, transposed ? n : k, transposed ? k : n, transposed ? "a1, a2" : "a2, a1");
}

}  // namespace opfuse::test
