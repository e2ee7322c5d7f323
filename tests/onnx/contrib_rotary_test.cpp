// RotaryEmbedding of com.microsoft: its positions, and the sizes it finds in its tables.
#include <gtest/gtest.h>

#include <cmath>

#include "interp/interpreter.hpp"
#include "model_bytes.hpp"
#include "onnx/read.hpp"

namespace opfuse::test {
namespace {

constexpr int64_t kRows = 8, kHalf = 2;

double angle(int64_t row, int64_t i) { return 0.3 * static_cast<double>(row) + static_cast<double>(i); }

/// x: f32 of these extents; two heads of 4
Graph graph_of(const Strings& x, const std::vector<int64_t>& positions, bool vector, const Strings& attributes = {}) {
  std::vector<float> cosines, sines;
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t i = 0; i < kHalf; ++i)
      cosines.push_back(static_cast<float>(std::cos(angle(row, i)))),
          sines.push_back(static_cast<float>(std::sin(angle(row, i))));
  ModelBytes m;
  m.graph.nodes = {node("RotaryEmbedding", {"x", "p", "cos", "sin"}, {"y"}, attributes, "turn", "com.microsoft")};
  const auto count = static_cast<int64_t>(positions.size());
  m.graph.initializers = {
      tensor("p", kInt64, vector ? std::vector<int64_t>{count} : std::vector<int64_t>{1, count}, integers(positions)),
      tensor("cos", kFloat, {kRows, kHalf}, floats(cosines)), tensor("sin", kFloat, {kRows, kHalf}, floats(sines))};
  m.graph.inputs = {value_info("x", kFloat, x)};
  m.graph.outputs = {value_info("y", kFloat, {})};
  m.domains = {"com.microsoft"};
  return read_onnx_bytes(m.text());
}

Tensor ramp(const std::vector<int64_t>& sizes) {
  Tensor t(DType::f32, sizes);
  for (int64_t i = 0; i < t.elements(); ++i) t.set_real(i, static_cast<double>(i % 7) - 3);
  return t;
}

TEST(ContribRotary, TurnsHalvesOfHeadsByTheirPositions) {
  const Tensor x = ramp({1, 3, 8});
  const Tensor y = interpret(graph_of({"1", "3", "8"}, {2, 3, 4}, false), {x}, {}).at(0);
  const Tensor from = interpret(graph_of({"1", "3", "8"}, {2}, true), {x}, {}).at(0);
  const Tensor open = interpret(graph_of({"1", "rows", "8"}, {2}, true), {x}, {}).at(0);
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t i = 0; i < kHalf; ++i) {
        const int64_t at = row * 8 + head * 4 + i;
        const double c = std::cos(angle(row + 2, i)), s = std::sin(angle(row + 2, i));
        EXPECT_NEAR(y.real(at), x.real(at) * c - x.real(at + kHalf) * s, 1e-6);
        EXPECT_NEAR(y.real(at + kHalf), x.real(at) * s + x.real(at + kHalf) * c, 1e-6);
        EXPECT_EQ(from.real(at), y.real(at));
        EXPECT_EQ(open.real(at), y.real(at));
      }
}

TEST(ContribRotary, ReadsHeadsInFrontOfRows) {
  const Tensor x = ramp({1, 2, 3, 4});
  const Tensor y = interpret(graph_of({"1", "2", "3", "4"}, {2}, true), {x}, {}).at(0);
  EXPECT_NEAR(y.real(4), x.real(4) * std::cos(angle(3, 0)) - x.real(6) * std::sin(angle(3, 0)), 1e-6);
}

TEST(ContribRotary, RefusesWhatItDoesNotCompute) {
  for (const std::string& a : {attribute("is_packed_batching", int64_t{1}), real_attribute("scale", 2)})
    EXPECT_EQ(graph_of({"1", "3", "8"}, {2}, true, {a}).nodes()[0]->op->name, "opaque");
}

}  // namespace
}  // namespace opfuse::test
