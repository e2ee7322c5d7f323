// Region texts of a convolution and a depthwise one behind it, and of means behind these.
#pragma once

#include <gtest/gtest.h>

#include "codegen/regions.hpp"

namespace opfuse::test {

struct Pair {
  Conv first{.c = 16, .h = 9, .w = 9, .o = 32, .kh = 1, .kw = 1, .pad = 0};
  Conv second{};  ///< its channels and image follow
};

/// The text of the second stage reads the first one's local result instead of a parameter.
inline std::string chain_region(Pair p) {
  p.second.n = p.first.n;
  p.second.c = p.second.o = p.second.group = p.first.o;
  p.second.h = conv_extent(p.first.h, p.first.kh, p.first);
  p.second.w = conv_extent(p.first.w, p.first.kw, p.first);
  std::string a = conv_region(p.first), b = conv_region(p.second);
  const auto replace = [](std::string& text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in\n" << text;
    text.replace(at, from.size(), to);
  };
  // parameters 0, 1, 2 of the first; 3, 4, 5 are weights, bias and result of the second
  const std::string y = a.substr(a.find("param output"), a.find("stage") - a.find("param output"));
  replace(a, y, b.substr(b.find("param constant"), b.find("stage") - b.find("param constant")));
  replace(a, "output param 3", "output local");
  std::string stage = b.substr(b.find("stage"));
  replace(stage, "output param 3", "output param 5");
  replace(stage, "read param 2", "read param 4");
  replace(stage, "read param 1", "read param 3");
  replace(stage, "read param 0", "read stage 0.0");
  return a + stage;
}

inline Pair sized(int c, int h, int w, int o, Conv second = {}) {
  Pair p;
  p.first.c = c, p.first.h = h, p.first.w = w, p.first.o = o;
  p.second = second;
  return p;
}

/// `text` stores [n, c, p, q] as its last parameter; a stage behind it averages `bands` bands of the rows.
inline std::string with_means(std::string text, const std::string& n, int c, int p, int q, int bands) {
  const std::string m = fmt::format("[{},{},{},1]", n, c, bands);
  const size_t stored = text.rfind("  output param ");
  const int param = std::stoi(text.substr(stored + 15));
  std::string kept = text.substr(stored);
  kept.replace(2, kept.find(" f32") - 2, "output local");
  text.insert(stored, kept);
  text.insert(text.find("stage"), "param output f32" + m + "\n");
  const int before = static_cast<int>(text.find("stage contraction") != std::string::npos);
  return text + fmt::format(
                    "stage window\n  domain {}\n  reduce [{},{}]\n  read stage {}.0 at [a0, a1, {}*a2 + a4, a5]\n"
                    "  reduction sum r0\n  output param {} f32{} at [a0, a1, a2, a3] = div(s0, {})\n",
                    m, p / bands, q, before, p / bands, param + 1, m, p / bands * q);
}

}  // namespace opfuse::test
