// Attention as a region of three stages, by its sizes: for the tests of every generator.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tensor/tensor.hpp"

namespace opfuse::test {

/// softmax(q k^T * scale + mask) v for [batch, rows, depth], [batch, keys, depth], [batch, keys, columns].
struct Sizes {
  std::string batch = "2", rows = "5", keys = "7";
  int depth = 4, columns = 4;
  std::string mask = "";                               ///< type and shape of an operand of the scores: "f32[5,7]"
  std::string mask_at = "a1, a2";                      ///< its index map
  std::string score = "mul(s0, 0.5)";                  ///< of s0 and r2
  std::string query = "r0", key = "r1", value = "r1";  ///< of the reads
  std::string weights = "div(exp(sub(r1, s0)), s1)";
  std::string result = "s0";
  std::string types[3] = {"f32", "f32", "f32"};  ///< of queries, keys and values
  bool keys_transposed = false;                  ///< keys are [batch, depth, keys]
  bool heads_inside = false;  ///< operands and result are [rows, batch, size], the result as [rows, batch * size]
};

inline std::string attention_region(const Sizes& s) {
  const auto operand = [&](const std::string& type, const std::string& rows, int size) {
    return s.heads_inside ? fmt::format("{}[{},{},{}]", type, rows, s.batch, size)
                          : fmt::format("{}[{},{},{}]", type, s.batch, rows, size);
  };
  const auto at = [&](int row, int column) {
    return s.heads_inside ? fmt::format("[a{}, a0, a{}]", row, column) : fmt::format("[a0, a{}, a{}]", row, column);
  };
  const std::string scores = fmt::format("[{},{},{}]", s.batch, s.rows, s.keys);
  std::string text = "region\nparam input " + operand(s.types[0], s.rows, s.depth) + "\n";
  text += "param input " +
          (s.keys_transposed ? fmt::format("{}[{},{},{}]", s.types[1], s.batch, s.depth, s.keys)
                             : operand(s.types[1], s.keys, s.depth)) +
          "\n";
  text += "param input " + operand(s.types[2], s.keys, s.columns) + "\n";
  const std::string result = s.heads_inside ? fmt::format("f32[{},{}]", s.rows, std::stoi(s.batch) * s.columns)
                                            : fmt::format("f32[{},{},{}]", s.batch, s.rows, s.columns);
  text += "param output " + result + "\n";
  if (!s.mask.empty()) text += "param input " + s.mask + "\n";
  text += "stage contraction\n  domain " + scores + fmt::format("\n  reduce [{}]\n", s.depth);
  text += "  read param 0 at " + at(1, 3) + "\n  read param 1 at " +
          (s.keys_transposed ? std::string("[a0, a3, a2]") : at(2, 3)) + "\n";
  if (!s.mask.empty()) text += "  read param 4 at [" + s.mask_at + "]\n";
  text += "  reduction sum mul(" + s.query + ", " + s.key + ")\n  output local f32" + scores +
          " at [a0, a1, a2] = " + s.score + "\n";
  text += "stage row\n  domain " + scores + fmt::format("\n  reduce [{}]\n", s.keys) +
          "  read stage 0.0 at [a0, a1, a3]\n  read stage 0.0 at [a0, a1, a2]\n  reduction max r0\n"
          "  reduction sum exp(sub(r0, s0))\n  output local f32" +
          scores + " at [a0, a1, a2] = " + s.weights + "\n";
  text += fmt::format("stage contraction\n  domain [{},{},{}]\n  reduce [{}]\n", s.batch, s.rows, s.columns, s.keys);
  text += "  read stage 1.0 at [a0, a1, a3]\n  read param 2 at " + at(3, 2) + "\n  reduction sum mul(r0, " + s.value +
          ")\n";
  text += "  output param 3 " + result + " at " +
          (s.heads_inside ? fmt::format("[a1, {}*a0 + a2]", s.columns) : std::string("[a0, a1, a2]")) + " = " +
          s.result + "\n";
  return text;
}

inline Sizes sized(int rows, int keys, int depth, int columns = 0, const std::string& batch = "2") {
  Sizes s;
  s.batch = batch;
  s.rows = std::to_string(rows);
  s.keys = std::to_string(keys);
  s.depth = depth;
  s.columns = columns ? columns : depth;
  return s;
}

inline Sizes masked(Sizes s, const std::string& type, const std::string& at, const std::string& score) {
  s.mask = type;
  s.mask_at = at;
  s.score = score;
  return s;
}

inline Sizes with_heads_inside(Sizes s) {
  s.heads_inside = true;
  return s;
}

inline Sizes with_keys_transposed(Sizes s) {
  s.keys_transposed = true;
  return s;
}

inline Sizes with_prologues(Sizes s) {
  s.query = "div(r0, 1.5)";
  s.key = "mul(r1, 0.25)";
  s.result = "max(s0, 0)";
  return s;
}

inline Sizes guarded(Sizes s) {
  s.weights = "t0 = div(exp(sub(r1, s0)), s1); select(is_nan(t0), 0, t0)";
  return s;
}

/// As ONNX has it: NaN of the scores passes.
inline Sizes zero_without_keys(Sizes s) {
  s.weights = "select(eq(s0, -inf), 0, div(exp(sub(r1, s0)), s1))";
  return s;
}

/// A mask of rows x keys whose row 1 and last row are `value` everywhere; elsewhere every third key.
inline Tensor holes(int rows, int keys, double value, double otherwise) {
  Tensor mask(DType::f32, {rows, keys});
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < keys; ++k)
      mask.set_real(r * keys + k, (r == 1 || r == rows - 1 || (r + k) % 3 == 0) ? value : otherwise);
  return mask;
}

inline Sizes open(int depth) {
  Sizes s;
  s.batch = "b";
  s.rows = "m";
  s.keys = "n";
  s.depth = s.columns = depth;
  return s;
}

}  // namespace opfuse::test
