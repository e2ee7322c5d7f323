// Quantised operators of com.microsoft: what they are read as, and one of them on numbers.
#include <gtest/gtest.h>

#include "interp/interpreter.hpp"
#include "model_bytes.hpp"
#include "onnx/read.hpp"

namespace opfuse::test {
namespace {

constexpr int64_t kU8 = 2, kF32 = 1;

std::string scale(const std::string& name, float value) { return tensor(name, kF32, {}, floats({value})); }
std::string zero(const std::string& name, uint8_t value) {
  return tensor(name, kU8, {}, std::string(1, static_cast<char>(value)));
}

struct Case {
  std::string op;
  Strings inputs;
  std::string read_as;  ///< opfuse's operators, one after another
  Strings attributes = {};
};

Graph graph_of(const Case& c) {
  ModelBytes m;
  m.graph.nodes = {node(c.op, c.inputs, {"y"}, c.attributes, "n", "com.microsoft")};
  m.graph.initializers = {scale("sa", 0.5F), zero("za", 10), scale("sb", 0.25F),
                          zero("zb", 3),     scale("sy", 1), zero("zy", 100)};
  m.graph.inputs = {value_info("a", kU8, {"1", "2", "4", "4"}), value_info("b", kU8, {"1", "2", "4", "4"})};
  m.graph.outputs = {value_info("y", kU8, {})};
  m.domains = {"com.microsoft"};
  return read_onnx_bytes(m.text());
}

std::string operators_of(const Graph& graph) {
  std::string all;
  for (const Node* n : graph.nodes()) all += (all.empty() ? "" : " ") + n->op->name;
  return all;
}

TEST(ContribQuantized, AreReadAsQuantiseAndDequantise) {
  const Strings two{"a", "sa", "za", "b", "sb", "zb", "sy", "zy"}, one{"a", "sa", "za", "sy", "zy"};
  const std::string pair = "dequantize_linear dequantize_linear ", q = " quantize_linear";
  const Case cases[] = {
      {"QLinearAdd", two, pair + "add" + q},
      {"QLinearMul", two, pair + "mul" + q},
      {"QLinearSigmoid", one, "dequantize_linear sigmoid" + q},
      {"QLinearLeakyRelu", one, "dequantize_linear leaky_relu" + q, {real_attribute("alpha", 0.2F)}},
      {"QLinearSoftmax",
       one,
       "dequantize_linear softmax" + q,
       {attribute("axis", int64_t{-1}), attribute("opset", int64_t{13})}},
      {"QLinearGlobalAveragePool", one, "dequantize_linear global_average_pool" + q},
      {"QLinearAveragePool",
       one,
       "dequantize_linear average_pool" + q,
       {attribute("kernel_shape", std::vector<int64_t>{2, 2})}},
      {"QLinearReduceMean", one, "dequantize_linear reduce_mean" + q, {attribute("axes", std::vector<int64_t>{2, 3})}},
      {"QLinearConcat",
       {"sy", "zy", "a", "sa", "za", "b", "sb", "zb"},
       pair + "concat" + q,
       {attribute("axis", int64_t{1})}},
      {"MatMulIntegerToFloat", {"a", "b", "sa", "sb", "za", "zb"}, pair + "matmul"},
      {"QuantizeLinear", {"sa", "sy", "zy"}, "quantize_linear"},
      {"DequantizeLinear", {"a", "sa", "za"}, "dequantize_linear"},
  };
  for (const Case& c : cases) EXPECT_EQ(operators_of(graph_of(c)), c.read_as) << c.op;
}

TEST(ContribQuantized, ChannelsLastIsNotRead) {
  const Case c{"QLinearGlobalAveragePool", {"a", "sa", "za", "sy", "zy"}, "", {attribute("channels_last", int64_t{1})}};
  EXPECT_EQ(operators_of(graph_of(c)), "opaque");
}

/// (20 - 10) / 2 + (7 - 3) / 4 = 6 in steps of 1 from 100.
TEST(ContribQuantized, AddsRealNumbers) {
  const Graph graph = graph_of({"QLinearAdd", {"a", "sa", "za", "b", "sb", "zb", "sy", "zy"}, ""});
  Tensor a(DType::u8, {1, 2, 4, 4}), b(DType::u8, {1, 2, 4, 4});
  for (int64_t i = 0; i < a.elements(); ++i) a.set_integer(i, 20), b.set_integer(i, 7);
  const std::vector<Tensor> y = interpret(graph, {a, b}, {});
  EXPECT_EQ(y.at(0).integer(5), 106);
}

}  // namespace
}  // namespace opfuse::test
