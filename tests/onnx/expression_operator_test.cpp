// Operators of custom domains as expressions: read like functions of the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "interp/interpreter.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"

namespace opfuse::test {
namespace {

using ::testing::HasSubstr;

/// x, b -> my.ops.f(x, b) -> y
std::string model(const Strings& inputs, const Strings& attributes = {}, int64_t type = 1) {
  ModelBytes m = conv_relu();
  m.graph.initializers.clear();
  m.graph.inputs.clear();
  for (const std::string& input : inputs) m.graph.inputs.push_back(value_info(input, type, {"3"}));
  Encoder domain;
  domain.bytes(7, "my.ops");
  m.graph.nodes = {node("f", inputs, {"y"}, attributes, "call") + domain.text()};
  m.graph.outputs = {value_info("y", type, {"3"})};
  return m.text();
}

std::vector<double> values(const Graph& graph, const std::vector<Tensor>& inputs) {
  const Tensor y = interpret(graph, inputs).at(0);
  std::vector<double> all;
  for (int64_t i = 0; i < y.elements(); ++i) all.push_back(y.real(i));
  return all;
}

const Tensor kX = Tensor::of<float>(DType::f32, {3}, {-1, 0, 2}), kB = Tensor::of<float>(DType::f32, {3}, {1, 2, 3});

Graph with(const std::string& definition, const std::string& bytes) {
  return read_onnx_bytes(bytes, {}, {.operators = {definition}});
}

TEST(ExpressionOperator, IsComputed) {
  const Graph graph = with("f(x, b) = x * sigmoid(b * x)", model({"x", "b"}));
  for (const Node* node : graph.nodes()) EXPECT_NE(node->op->name, "opaque");
  EXPECT_THAT(values(graph, {kX, kB}),
              ::testing::Pointwise(::testing::DoubleNear(1e-6), {-1 / (1 + std::exp(1)), 0., 2 / (1 + std::exp(-6))}));
}

TEST(ExpressionOperator, KeepsPrecedenceAndNumbersTakeTheTypeOfWhatTheyMeet) {
  const std::string bytes = model({"x", "b"});
  EXPECT_THAT(values(with("f(x, b) = -x ** 2 + 2 * (b - 1) / 4", bytes), {kX, kB}), ::testing::ElementsAre(-1, .5, -3));
  EXPECT_THAT(values(with("my.ops::f(x, b) = where(x <= 0, 1, max(x, b, 0.5))  # text", bytes), {kX, kB}),
              ::testing::ElementsAre(1, 1, 3));
  const Graph wide = with("f(x) = x * 0.1", model({"x"}, {}, 11));
  EXPECT_EQ(values(wide, {Tensor::of<double>(DType::f64, {3}, {1, 2, 4})}).at(0), 0.1) << "not rounded to f32";
}

TEST(ExpressionOperator, HasAttributesWithDefaults) {
  const std::string leaky = "f(x, alpha = 0.25) = where(x > 0, x, alpha * x)";
  EXPECT_THAT(values(with(leaky, model({"x"})), {kX}), ::testing::ElementsAre(-.25, 0, 2));
  EXPECT_THAT(values(with(leaky, model({"x"}, {real_attribute("alpha", 0.5)})), {kX}),
              ::testing::ElementsAre(-.5, 0, 2));
}

TEST(ExpressionOperator, IsExportedAsWhatEveryRuntimeKnows) {
  const Graph graph = with("f(x) = tanh(x) + 1", model({"x"}));
  const Graph again = read_onnx_bytes(write_onnx_bytes(graph));
  EXPECT_EQ(values(again, {kX}), values(graph, {kX}));
}

TEST(ExpressionOperator, LeavesOtherOperatorsAlone) {
  const Graph graph = with("g(x) = x", model({"x"}));
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_EQ(graph.nodes()[0]->op->name, "opaque");
}

std::string refusal(const std::string& definition) {
  try {
    with(definition, model({"x", "b"}));
  } catch (const Error& error) {
    return error.what();
  }
  return "read";
}

TEST(ExpressionOperator, SaysWhereItDoesNotParse) {
  EXPECT_THAT(refusal("f(x, b) = x * sigmod(b)"), HasSubstr("--operator:1:15: there is no function \"sigmod\""));
  EXPECT_THAT(refusal("f(x, b) = x * c"), HasSubstr("1:15: \"c\" is not a parameter of \"f\""));
  EXPECT_THAT(refusal("f(x, b) = x b"), HasSubstr("1:13: an operator or the end of the line is missing"));
  EXPECT_THAT(refusal("f(x, x) = x"), HasSubstr("there are two parameters \"x\""));
  EXPECT_THAT(refusal("f(a = 1) = a"), HasSubstr("at least one parameter without a value"));
  EXPECT_THAT(refusal("f(x, b) = max(x)"), HasSubstr("max takes 2 or more operands, not 1"));
  EXPECT_THAT(refusal("f(x, b) = 1e999 * x"), HasSubstr("not a number that fits f64"));
  EXPECT_THAT(refusal("f(x, b) = " + std::string(10000, '(') + "x"), HasSubstr("nested more than"));
  EXPECT_THAT(refusal("f(x, b) = x\nf(x, b) = b"), HasSubstr("operator \"f\" of domain my.ops is defined twice"));
  EXPECT_THAT(refusal("no_such_file.txt"), HasSubstr("there is no file 'no_such_file.txt' of operators"));
}

}  // namespace
}  // namespace opfuse::test
