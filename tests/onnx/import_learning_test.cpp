// Operators of ai.onnx.ml on numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interp/interpreter.hpp"
#include "model_bytes.hpp"
#include "onnx/read.hpp"

namespace opfuse::test {
namespace {

using testing::ElementsAre;

std::vector<double> result(const std::string& op, const Strings& attributes, const Tensor& x) {
  ModelBytes m;
  const bool picks = op == "ArrayFeatureExtractor";
  m.graph.nodes = {node(op, picks ? Strings{"x", "columns"} : Strings{"x"}, {"y"}, attributes, "n", "ai.onnx.ml")};
  m.graph.initializers = {tensor("columns", kInt64, {1, 2}, integers({2, 0}))};
  Strings dims;
  for (int64_t size : x.sizes()) dims.push_back(std::to_string(size));
  m.graph.inputs = {value_info("x", x.dtype() == DType::f32 ? kFloat : kInt64, dims)};
  m.graph.outputs = {value_info("y", 0, {})};
  m.domains = {"ai.onnx.ml"};
  const Tensor y = interpret(read_onnx_bytes(m.text()), {x}, {}).at(0);
  std::vector<double> values;
  for (int64_t i = 0; i < y.elements(); ++i) values.push_back(y.real(i));
  return values;
}

std::string reals(const std::string& name, const std::vector<float>& values) {
  Encoder a;
  a.bytes(1, name);
  for (float v : values) a.real(7, v);
  a.integer(20, 6);
  return a.text();
}

TEST(Learning, ArithmeticOnTensors) {
  const Tensor x = Tensor::of(DType::f32, {2, 3}, std::vector<double>{0, 0.5, 1, -1, 2, 3});
  EXPECT_THAT(result("ArrayFeatureExtractor", {}, x), ElementsAre(1, 0, 3, -1));
  EXPECT_THAT(result("Binarizer", {real_attribute("threshold", 0.5F)}, x), ElementsAre(0, 0, 1, 0, 1, 1));
  EXPECT_THAT(result("Scaler", {reals("offset", {1, 0, 1}), reals("scale", {2})}, x), ElementsAre(-2, 1, 0, -4, 4, 4));
  const Tensor whole = Tensor::from_i64({0, 1, 2});
  EXPECT_THAT(result("Binarizer", {real_attribute("threshold", 0.5F)}, whole), ElementsAre(0, 1, 1));
  EXPECT_THAT(result("Scaler", {reals("offset", {0.5F}), reals("scale", {2})}, whole), ElementsAre(-1, 1, 3));
}

std::string numbers(const std::string& name, const std::vector<int64_t>& values) { return attribute(name, values); }

TEST(Learning, LinearModels) {
  const Tensor x = Tensor::of(DType::f32, {2, 2}, std::vector<double>{1, 2, 3, -1});
  const std::string rows = reals("coefficients", {1, 0, 0, 1, 1, 1}), bias = reals("intercepts", {0, 1, -1});
  EXPECT_THAT(result("LinearRegressor", {rows, bias, attribute("targets", int64_t{3})}, x),
              ElementsAre(1, 3, 2, 3, 0, 1));
  EXPECT_THAT(result("LinearRegressor", {reals("coefficients", {2, 1})}, x), ElementsAre(4, 5));
  EXPECT_THAT(result("LinearClassifier", {rows, bias, numbers("classlabels_ints", {5, 6, 7})}, x), ElementsAre(6, 5));
}

TEST(Learning, NormsOfRows) {
  const Tensor x = Tensor::of(DType::f32, {2, 2}, std::vector<double>{3, -4, 0, 0});
  EXPECT_THAT(result("Normalizer", {text_attribute("norm", "L1")}, x),
              testing::Pointwise(testing::DoubleNear(1e-6), {3.0 / 7, -4.0 / 7, 0.0, 0.0}));
  EXPECT_THAT(result("Normalizer", {text_attribute("norm", "L2")}, x),
              testing::Pointwise(testing::DoubleNear(1e-6), {0.6, -0.8, 0.0, 0.0}));
}

TEST(Learning, WhatIsMissingAndWhatIsACategory) {
  const Tensor x = Tensor::of(DType::f32, {2, 2}, std::vector<double>{NAN, 2, 3, NAN});
  EXPECT_THAT(
      result("Imputer", {reals("imputed_value_floats", {7, 8}), real_attribute("replaced_value_float", NAN)}, x),
      ElementsAre(7, 2, 3, 8));
  const Tensor whole = Tensor::from_i64({1, 5, 3});
  EXPECT_THAT(
      result("Imputer", {numbers("imputed_value_int64s", {9}), attribute("replaced_value_int64", int64_t{5})}, whole),
      ElementsAre(1, 9, 3));
  EXPECT_THAT(result("OneHotEncoder", {numbers("cats_int64s", {3, 1})}, whole), ElementsAre(0, 1, 0, 0, 1, 0));
  EXPECT_THAT(result("FeatureVectorizer", {}, whole), ElementsAre(1, 5, 3));
}

TEST(Learning, ClassesThatAreWordsAreRefused) {
  EXPECT_THROW(
      result("OneHotEncoder", {attribute("zeros", int64_t{0}), numbers("cats_int64s", {1})}, Tensor::from_i64({1})),
      Error);
}

}  // namespace
}  // namespace opfuse::test
