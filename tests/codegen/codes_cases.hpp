// Regions that sum codes, with operands: convolutions and rows of features, their codes drawn or the extremes.
#pragma once

#include <random>

#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"

namespace opfuse::test {

struct Codes {
  Conv conv;
  int padding = 0;          ///< the code that stands for taps outside
  int zero = 3;             ///< of the result
  int unit = 64;            ///< steps are 1 / unit: a power of two plants ties
  bool extreme = false;     ///< codes 0 and 255, weights -128 and 127 only
  bool with_signs = false;  ///< the data are i8
  bool full = false;        ///< sums reach the ends of i32
  int same = 0;             ///< all weights, of data that are 255
  bool middle = false;      ///< the sum is quantised before the residual is added, as graphs with a pair there do
  bool chain = false;       ///< a GELU that is quantised behind each operator: a table of codes
};

/// Of the code of a sum: x (1 + erf(x / sqrt 2)) / 2, three roundings inside.
inline std::string chain_of(const std::string& real) {
  const auto pair = [](const std::string& x, double step) {
    return fmt::format("mul(min(max(round_even(mul({}, {})), -117), 138), {})", x, 1 / step, step);
  };
  const std::string x = pair(real, 0.03125);
  const std::string erf = pair(fmt::format("erf({})", pair(fmt::format("mul({}, 0.70710677)", x), 0.03125)), 0.0078125);
  return fmt::format("mul({}, mul({}, add({}, 1)))", 16.0, x, erf);
}

inline std::string code_of(const std::string& real, int zero) {
  return fmt::format("add(min(max(round_even({}), {}), {}), {})", real, -zero, 255 - zero, zero);
}

inline std::string codes_region(const Codes& v) {
  const Conv& c = v.conv;
  const bool depthwise = c.group > 1 && c.group == c.c && c.o == c.c;
  const int p = conv_extent(c.h, c.kh, c), q = conv_extent(c.w, c.kw, c), cg = c.c / c.group;
  const std::string y = fmt::format("[{},{},{},{}]", c.n, c.o, p, q);
  const char* type = v.with_signs ? "i8" : "u8";
  std::string text = fmt::format(
      "region\nparam input {}[{},{},{},{}]\nparam constant i8[{},{},{},{}]\nparam constant i32[{}]\n"
      "param constant f32[{}]\n",
      type, c.n, c.c, c.h, c.w, c.o, cg, c.kh, c.kw, c.o, c.o);
  if (c.residual) text += "param input u8" + y + "\n";
  text += fmt::format("param output u8{0}\nstage {1}\n  domain {0}\n  reduce [{2}{3},{4}]\n", y,
                      depthwise ? "window" : "contraction", depthwise ? "" : fmt::format("{},", cg), c.kh, c.kw);
  const std::string channel = depthwise ? "a1" : c.group > 1 ? fmt::format("{}*a1/{} + a4", cg, c.o / c.group) : "a4";
  const int tap = depthwise ? 4 : 5;
  text += fmt::format("  read param 0 at [a0, {}, {}, {}]\n  read param 1 at [a1, {}, a{}, a{}]\n", channel,
                      sliding(2, tap, c), sliding(3, tap + 1, c), depthwise ? "0" : "a4", tap, tap + 1);
  text += "  read param 2 at [a1]\n  read param 3 at [a1]\n";
  if (c.residual) text += "  read param 4 at [a0, a1, a2, a3]\n";
  const std::string read = fmt::format("r0:{}", type);
  const std::string code = c.pad > 0 ? fmt::format("select(in0, {}, {}:{})", read, v.padding, type) : read;
  text += fmt::format(
      "  reduction sum mul({}, cast<i32>(r1:i8))\n",
      fmt::format(fmt::runtime(v.with_signs && !depthwise ? "add(cast<i32>({}), 128:i32)" : "cast<i32>({})"), code));
  std::string real = "mul(cast<f32>(add(s0:i32, r2:i32)), r3)";
  if (v.chain) real = chain_of(real);
  if (v.middle) real = fmt::format("mul(min(max(round_even({}), -100), 155), 0.75)", real);
  if (c.residual) real = fmt::format("max(add({}, mul(cast<f32>(sub(cast<i32>(r4:u8), 7:i32)), 0.8)), 0)", real);
  return text + fmt::format("  output param {} u8{} at [a0, a1, a2, a3] = cast<u8>({})\n", c.residual ? 5 : 4, y,
                            code_of(real, v.zero));
}

/// What 255 sum |w| leaves of i32 at most.
inline int64_t room_of(const Conv& c) {
  return (int64_t{1} << 31) - 1 - int64_t{255} * 128 * (c.c / c.group) * c.kh * c.kw;
}

inline Tensor drawn(DType dtype, const std::vector<int64_t>& sizes, std::mt19937& draw, const Codes& v) {
  Tensor t(dtype, sizes);
  for (int64_t i = 0; i < t.elements(); ++i) {
    const auto number = static_cast<int64_t>(draw() % 256), low = static_cast<int64_t>(dtype == DType::i8 ? -128 : 0);
    if (dtype == DType::f32)
      t.set_real(i, 1.0 / (v.unit << draw() % 3));
    else if (v.same != 0 && dtype != DType::i32)
      t.set_integer(i, dtype == DType::u8 ? 255 : v.same);
    else if (dtype == DType::i32)
      t.set_integer(i, v.full ? (number & 1 ? 1 : -1) * room_of(v.conv) : number * 16 - 2000);
    else
      t.set_integer(i, v.extreme ? low + 255 * (number & 1) : low + number);
  }
  return t;
}

inline Case codes(const std::string& name, const Codes& v) {
  Case c = wished(name, codes_region(v));
  c.precision = Precision::typed;
  std::mt19937 draw(17);
  for (const Param& param : parse_region(c.region).params)
    c.operands.push_back(drawn(param.type.dtype, param.type.shape.evaluate({}), draw, v));
  return c;
}

/// Rows of features: products of matrices where the target has them and a row fills a register's.
inline std::string rows_region(int rows, int outputs, int depth, const char* type, bool chain) {
  const char* code = std::string_view(type) == "i8" ? "add(cast<i32>(r0:i8), 128:i32)" : "cast<i32>(r0:u8)";
  const std::string real = "mul(cast<f32>(add(s0:i32, r2:i32)), r3)";
  return fmt::format(
      "region\nparam input {3}[{0},{2}]\nparam constant i8[{2},{1}]\nparam constant i32[{1}]\nparam constant f32[{1}]\n"
      "param output u8[{0},{1}]\nstage contraction\n  domain [{0},{1}]\n  reduce [{2}]\n  read param 0 at [a0, a2]\n"
      "  read param 1 at [a2, a1]\n  read param 2 at [a1]\n  read param 3 at [a1]\n"
      "  reduction sum mul({4}, cast<i32>(r1:i8))\n  output param 4 u8[{0},{1}] at [a0, a1] = cast<u8>({5})\n",
      rows, outputs, depth, type, code, code_of(chain ? chain_of(real) : real, 128));
}

inline Case rows(const std::string& name, int count, int outputs, int depth, const char* type, bool extreme,
                 bool chain = false) {
  Case c = wished(name, rows_region(count, outputs, depth, type, chain));
  c.precision = Precision::typed;
  std::mt19937 draw(23);
  for (const Param& param : parse_region(c.region).params)
    c.operands.push_back(
        drawn(param.type.dtype, param.type.shape.evaluate({}), draw, {.unit = 512, .extreme = extreme}));
  return c;
}

inline Conv conv(int c, int o, int size, int k, int pad = 0, int stride = 1, int dilation = 1, int group = 1) {
  Conv v;
  v.c = c, v.o = o, v.h = v.w = size, v.kh = v.kw = k, v.pad = pad, v.stride = stride, v.dilation = dilation;
  v.group = group;
  return v;
}

inline Conv with_residual(Conv v, const std::string& n = "1") {
  v.residual = true;
  v.n = n;
  return v;
}

}  // namespace opfuse::test
