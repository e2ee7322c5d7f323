// Bodies that are read as often as they run, and optionals of which it is known whether they hold anything.
#include <gtest/gtest.h>

#include "interp/interpreter.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "ops/run_op.hpp"

namespace opfuse::test {
namespace {

constexpr int64_t kBool = 9;

std::vector<double> values_of(const Tensor& t) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.elements(); ++i) values.push_back(t.real(i));
  return values;
}

/// Running sums of the columns of x: a state s, slices x, results s and s^2.
std::string scan_model(int64_t steps, const Strings& more = {}) {
  const std::string body = GraphBytes{.nodes = {node("Add", {"s", "c"}, {"t"}), node("Mul", {"t", "t"}, {"p"})},
                                      .inputs = {value_info("s", kFloat, {"2"}), value_info("c", kFloat, {"2"})},
                                      .outputs = {value_info("t", kFloat, {"2"}), value_info("p", kFloat, {"2"})}}
                               .text();
  Strings attributes{graph_attribute("body", body), attribute("num_scan_inputs", int64_t{1}),
                     attribute("scan_input_axes", std::vector<int64_t>{1})};
  attributes.insert(attributes.end(), more.begin(), more.end());
  return ModelBytes{
      .graph = {.nodes = {node("Scan", {"s0", "x"}, {"s1", "y"}, attributes, "scan")},
                .inputs = {value_info("s0", kFloat, {"2"}), value_info("x", kFloat, {"2", std::to_string(steps)})},
                .outputs = {value_info("s1", kFloat, {"2"}), value_info("y", kFloat, {std::to_string(steps), "2"})}}}
      .text();
}

TEST(Unrolled, AScanOverAFixedAxis) {
  const std::vector<Tensor> inputs{reals(DType::f32, {0, 1}),
                                   reals(DType::f32, {1, 2, 3, 10, 20, 30}).reshaped({2, 3})};
  const Graph graph = read_onnx_bytes(scan_model(3));
  verify(graph);
  const std::vector<Tensor> outputs = interpret(graph, inputs);
  EXPECT_EQ(values_of(outputs[0]), (std::vector<double>{6, 61}));
  EXPECT_EQ(values_of(outputs[1]), (std::vector<double>{1, 121, 9, 961, 36, 3721}));
  const Graph back = read_onnx_bytes(scan_model(3, {attribute("scan_input_directions", std::vector<int64_t>{1}),
                                                    attribute("scan_output_directions", std::vector<int64_t>{1})}));
  EXPECT_EQ(values_of(interpret(back, inputs)[1]), (std::vector<double>{36, 3721, 25, 2601, 9, 961}));
}

TEST(Unrolled, WhatIsTooLongIsKeptWithItsReason) {
  ReadOptions options;
  options.limits.unrolled_nodes = 5;
  const Graph graph = read_onnx_bytes(scan_model(3), {}, options);
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_TRUE(graph.nodes()[0]->is("opaque"));
  EXPECT_NE(static_cast<const OpaqueAttrs*>(graph.nodes()[0]->attrs())->reason.find("at most 5"), std::string::npos);
  verify(graph);
}

/// What an If within a body makes is another value in each step.
TEST(Unrolled, AnIfWithinALoop) {
  const std::string branch =
      GraphBytes{.nodes = {node("Add", {"s", "s"}, {"r"})}, .outputs = {value_info("r", kFloat, {"1"})}}.text();
  const std::string body =
      GraphBytes{
          .nodes = {node("Identity", {"c"}, {"go"}),
                    node("If", {"yes"}, {"t"},
                         {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}, "if")},
          .inputs = {value_info("i", kInt64, {}), value_info("c", kBool, {}), value_info("s", kFloat, {"1"})},
          .outputs = {value_info("go", kBool, {}), value_info("t", kFloat, {"1"})}}
          .text();
  const Graph graph = read_onnx_bytes(ModelBytes{
      .graph = {
          .nodes = {node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body)}, "loop")},
          .initializers = {tensor("n", kInt64, {}, integers({3})), tensor("yes", kBool, {}, std::string(1, '\1'))},
          .inputs = {value_info("x", kFloat, {"1"})},
          .outputs = {value_info("y", kFloat,
                                 {"1"})}}}.text());
  verify(graph);
  EXPECT_EQ(values_of(interpret(graph, {reals(DType::f32, {1})})[0]), (std::vector<double>{8}));
}

std::string loop_model(const std::string& next_condition) {
  const std::string body =
      GraphBytes{
          .nodes = {node("Cast", {"i"}, {"f"}, {attribute("to", kFloat)}), node("Add", {"s", "f"}, {"t"}),
                    node("Identity", {next_condition}, {"go"}), node("Identity", {"t"}, {"p"})},
          .inputs = {value_info("i", kInt64, {}), value_info("c", kBool, {}), value_info("s", kFloat, {"1"})},
          .outputs = {value_info("go", kBool, {}), value_info("t", kFloat, {"1"}), value_info("p", kFloat, {"1"})}}
          .text();
  return ModelBytes{
      .graph = {.nodes = {node("Loop", {"n", "", "x"}, {"y", "all"}, {graph_attribute("body", body)})},
                .initializers = {tensor("n", kInt64, {}, integers({4})), tensor("no", kBool, {}, std::string(1, '\0'))},
                .inputs = {value_info("x", kFloat, {"1"})},
                .outputs = {value_info("y", kFloat, {"1"}), value_info("all", kFloat, {"", "1"})}}}
      .text();
}

TEST(Unrolled, ALoopOfKnownTrips) {
  const std::vector<Tensor> outputs = interpret(read_onnx_bytes(loop_model("c")), {reals(DType::f32, {10})});
  EXPECT_EQ(values_of(outputs[0]), (std::vector<double>{16}));
  EXPECT_EQ(values_of(outputs[1]), (std::vector<double>{10, 11, 13, 16}));
}

TEST(Unrolled, ALoopThatStopsItself) {
  const std::vector<Tensor> outputs = interpret(read_onnx_bytes(loop_model("no")), {reals(DType::f32, {10})});
  EXPECT_EQ(values_of(outputs[1]), (std::vector<double>{10}));
}

TEST(Unrolled, WhetherAnOptionalHoldsAnything) {
  ModelBytes model{
      .graph = {.nodes = {node("Optional", {"x"}, {"o"}), node("OptionalHasElement", {"o"}, {"h"}),
                          node("OptionalGetElement", {"o"}, {"e"}), node("OptionalHasElement", {""}, {"none"}),
                          node("Neg", {"e"}, {"y"})},
                .inputs = {value_info("x", kFloat, {"1"})},
                .outputs = {value_info("y", kFloat, {"1"}), value_info("h", kBool, {}), value_info("none", kBool, {})}},
      .opset = 18};
  const std::vector<Tensor> outputs = interpret(read_onnx_bytes(model.text()), {reals(DType::f32, {3})});
  EXPECT_EQ(outputs[0].real(0), -3);
  EXPECT_EQ(outputs[1].integer(0), 1);
  EXPECT_EQ(outputs[2].integer(0), 0);
}

}  // namespace
}  // namespace opfuse::test
