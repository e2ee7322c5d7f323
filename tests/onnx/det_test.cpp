// Determinants of matrices that are too large for a formula, by elimination.
#include <gtest/gtest.h>

#include "interp/interpreter.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "opfuse/error.hpp"

namespace opfuse::test {
namespace {

ModelBytes det_of(const Strings& sizes) {
  return {.graph = {.nodes = {node("Det", {"x"}, {"y"}, {}, "det")},
                    .inputs = {value_info("x", kFloat, sizes)},
                    .outputs = {value_info("y", kFloat, {"n"})}}};
}

/// Without a pivot on the diagonal; two equal rows; powers of 1, 2, 3, 4; nothing.
TEST(Det, EliminatesWithPivots) {
  const Graph graph = read_onnx_bytes(det_of({"n", "4", "4"}).text());
  const std::vector<double> numbers = {0, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, -1, 0, 0, 4,  0,   //
                                       1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4,  0, 1, 0,  2,   //
                                       1, 1, 1, 1, 1, 2, 4, 8, 1, 3, 9, 27, 1, 4, 16, 64,  //
                                       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0,  0};
  const Tensor x = Tensor::of(DType::f32, {4, 4, 4}, numbers);
  const Tensor y = interpret(graph, {x}).at(0);
  ASSERT_EQ(y.sizes(), std::vector<int64_t>{4});
  const double want[] = {-24, 0, 12, 0};
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(y.real(i), want[i], 1e-6) << i;
}

TEST(Det, OfASingleMatrixIsAScalar) {
  const Graph graph = read_onnx_bytes(det_of({"5", "5"}).text());
  Tensor x(DType::f32, {5, 5});
  for (int64_t i = 0; i < 5; ++i) x.set_real(i * 5 + (i + 1) % 5, static_cast<double>(i + 1));
  const Tensor y = interpret(graph, {x}).at(0);
  EXPECT_EQ(y.elements(), 1);
  EXPECT_NEAR(y.real(0), 120, 1e-6);  // a cycle of five is even
}

TEST(Det, LargerThanItsLimitNamesIt) {
  const Graph graph = read_onnx_bytes(det_of({"300", "300"}).text());
  ASSERT_TRUE(graph.find_node("det")->is("opaque"));
  const auto& kept = *static_cast<const OpaqueAttrs*>(graph.find_node("det")->attrs());
  EXPECT_NE(kept.reason.find("256"), std::string::npos) << kept.reason;
}

}  // namespace
}  // namespace opfuse::test
