// Windowed layers drawn at random: convolutions (plain, depthwise, grouped) and pools, each axis with its own extent,
// taps, stride, dilation and padding at both ends; extents of one, taps of one, open extents.
#pragma once

#include <random>

#include "codegen/regions.hpp"
#include "codegen/run_kernel.hpp"

namespace opfuse::test {

/// Output o, tap t reads stride * o + dilation * t - before.
struct Axis {
  std::string in, out;
  int taps = 1, stride = 1, dilation = 1, before = 0;
};

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  Case layer() {
    const bool open = one_of({0, 0, 0, 1}) != 0;
    const int n = one_of({1, 1, 2, 3});
    const Axis rows = axis(open ? "h" : ""), columns = axis(open ? "w" : "");
    const std::string batch = one_of({0, 0, 1}) ? "n" : std::to_string(n);
    const std::string kind = one_of_text({"conv", "conv", "depthwise", "depthwise", "grouped", "max", "sum"});
    Case c = wished(kind, kind == "max" || kind == "sum" ? pool(kind, batch, rows, columns)
                                                         : convolution(kind, batch, rows, columns));
    c.wished = one_of({0, 1, 1, 1}) != 0;
    c.bindings.clear();
    for (const int extent : open ? std::vector<int>{1, 2, 9, 34} : std::vector<int>{1})
      c.bindings.push_back({{"n", n}, {"h", extent}, {"w", one_of({1, 3, 7, 20})}});
    return c;
  }

 private:
  std::mt19937 random_;

  int one_of(const std::vector<int>& values) { return values[random_() % values.size()]; }
  std::string one_of_text(const std::vector<std::string>& values) { return values[random_() % values.size()]; }

  Axis axis(const std::string& symbol) {
    Axis a;
    a.taps = one_of({1, 1, 2, 3, 3, 4, 5, 7});
    a.stride = one_of({1, 1, 1, 2, 3, 4});
    a.dilation = one_of({1, 1, 1, 2, 3});
    a.before = one_of({0, 0, 1, 2, 3, a.taps * a.dilation});
    if (!symbol.empty()) {
      a.in = fmt::format("{}*{} + {}", a.stride, symbol, one_of({0, 1, 3}));
      a.out = fmt::format("{} + {}", symbol, one_of({0, 1, 2}));
      return a;
    }
    const int in = one_of({1, 2, 3, 5, 8, 11, 17, 20, 33});
    a.in = std::to_string(in);
    a.out = std::to_string(one_of({1, 1, (in + a.stride - 1) / a.stride, (in + a.before) / a.stride + 1}));
    return a;
  }

  static std::string at(const Axis& a, int axis, int tap) {
    return fmt::format("{}*a{} + {}*a{} + {}", a.stride, axis, a.dilation, tap, -a.before);
  }

  std::string pool(const std::string& kind, const std::string& n, const Axis& rows, const Axis& columns) {
    const int c = one_of({1, 2, 3, 5, 8, 15, 16, 17, 24, 33});
    const std::string y = fmt::format("[{},{},{},{}]", n, c, rows.out, columns.out);
    return fmt::format(
        "region\nparam input f32[{},{},{},{}]\nparam output f32{}\nstage window\n  domain {}\n  reduce [{},{}]\n"
        "  read param 0 at [a0, a1, {}, {}]\n  reduction {} select(in0, r0, {})\n"
        "  output param 1 f32{} at [a0, a1, a2, a3] = {}\n",
        n, c, rows.in, columns.in, y, y, rows.taps, columns.taps, at(rows, 2, 4), at(columns, 3, 5), kind,
        kind == "max" ? "-inf" : "0", y, one_of_text({"s0", "max(s0, -2)", "mul(s0, 0.25)"}));
  }

  std::string convolution(const std::string& kind, const std::string& n, const Axis& rows, const Axis& columns) {
    const bool depthwise = kind == "depthwise";
    const int groups = depthwise ? one_of({2, 3, 5, 8, 15, 16, 17, 24, 33}) : kind == "grouped" ? one_of({2, 3, 8}) : 1;
    const int depth = depthwise ? 1 : one_of({1, 1, 2, 3, 8, 16, 17});
    const int outputs = depthwise ? 1 : one_of({1, 2, 3, 8, 16, 17, 33});
    const int o = groups * outputs, first = depthwise ? 4 : 5;
    const std::string y = fmt::format("[{},{},{},{}]", n, o, rows.out, columns.out);
    const std::string channel = depthwise ? "a1" : groups > 1 ? fmt::format("{}*a1/{} + a4", depth, outputs) : "a4";
    const std::string activation = one_of_text({"{}", "max({}, 0)", "div({0}, add(1, exp(neg({0}))))"});
    return fmt::format(
               "region\nparam input f32[{},{},{},{}]\nparam constant f32[{},{},{},{}]\nparam constant f32[{}]\n", n,
               groups * depth, rows.in, columns.in, o, depth, rows.taps, columns.taps, o) +
           fmt::format("param output f32{}\nstage {}\n  domain {}\n  reduce [{}{},{}]\n", y,
                       depthwise ? "window" : "contraction", y, depthwise ? "" : fmt::format("{},", depth), rows.taps,
                       columns.taps) +
           fmt::format("  read param 0 at [a0, {}, {}, {}]\n  read param 1 at [a1, {}, a{}, a{}]\n", channel,
                       at(rows, 2, first), at(columns, 3, first + 1), depthwise ? "0" : "a4", first, first + 1) +
           fmt::format(
               "  read param 2 at [a1]\n  reduction sum mul(select(in0, r0, 0), r1)\n"
               "  output param 3 f32{} at [a0, a1, a2, a3] = {}\n",
               y, fmt::format(fmt::runtime(activation), "add(s0, r2)"));
  }
};

}  // namespace opfuse::test
