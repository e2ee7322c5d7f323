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
  m.graph.outputs = {value_info("y", 0, {})};
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

/// With the channels last: between two transposes, so [1, 2, 4, 4] is an image of 2 x 4 with 4 channels.
TEST(ContribQuantized, ChannelsMayBeLast) {
  const Strings one{"a", "sa", "za", "sy", "zy"};
  const std::string last = attribute("channels_last", int64_t{1});
  const std::string window = attribute("kernel_shape", std::vector<int64_t>{2, 2});
  const Graph average = graph_of({"QLinearAveragePool", one, "", {last, window}});
  EXPECT_EQ(operators_of(average), "transpose dequantize_linear average_pool quantize_linear transpose");
  EXPECT_EQ(average.outputs()[0]->type.text(), "u8[1,1,3,4]");
  const Graph global = graph_of({"QLinearGlobalAveragePool", one, "", {last}});
  EXPECT_EQ(operators_of(global), "transpose dequantize_linear global_average_pool quantize_linear transpose");
  Tensor a(DType::u8, {1, 2, 4, 4}), b(DType::u8, {1, 2, 4, 4});
  for (int64_t i = 0; i < a.elements(); ++i) a.set_integer(i, 10 + 2 * (i % 4));  // channel c is c
  const Tensor y = interpret(global, {a, b}, {}).at(0), z = interpret(average, {a, b}, {}).at(0);
  for (int64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(y.integer(c), 100 + c);
    EXPECT_EQ(z.integer(4 + c), 100 + c);
  }
}

/// (20 - 10) / 2 + (7 - 3) / 4 = 6 in steps of 1 from 100.
TEST(ContribQuantized, AddsRealNumbers) {
  const Graph graph = graph_of({"QLinearAdd", {"a", "sa", "za", "b", "sb", "zb", "sy", "zy"}, ""});
  Tensor a(DType::u8, {1, 2, 4, 4}), b(DType::u8, {1, 2, 4, 4});
  for (int64_t i = 0; i < a.elements(); ++i) a.set_integer(i, 20), b.set_integer(i, 7);
  const std::vector<Tensor> y = interpret(graph, {a, b}, {});
  EXPECT_EQ(y.at(0).integer(5), 106);
}

// ---- products of codes in i32, of the default domain

/// Of computed codes, of weights that are i8 and of those that are not. 625 * 0.004 is a tie in real numbers;
/// f32(0.02 * 0.01 / 0.05) is below 0.004, so the quotient is too.
TEST(Quantized, ProductsOfComputedCodesAreExact) {
  constexpr int64_t kI8 = 3;
  for (const bool constant : {true, false})
    for (const int64_t type : {kI8, kU8}) {
      ModelBytes m;
      m.graph.nodes = {node("QLinearMatMul", {"a", "sa", "za", "b", "sb", "zb", "sy", "zy"}, {"y"})};
      m.graph.initializers = {scale("sa", 0.02F), zero("za", 0),  scale("sb", 0.01F),
                              scale("sy", 0.05F), zero("zy", 37), tensor("zb", type, {}, std::string(1, 0))};
      m.graph.inputs = {value_info("a", kU8, {"1", "5"})};
      const std::string codes(5, static_cast<char>(type == kI8 ? 1 : 250));
      if (constant)
        m.graph.initializers.push_back(tensor("b", type, {5, 1}, codes));
      else
        m.graph.inputs.push_back(value_info("b", type, {"5", "1"}));
      m.graph.outputs = {value_info("y", 0, {})};
      const Graph graph = read_onnx_bytes(m.text());
      EXPECT_EQ(operators_of(graph).find("dequantize_linear") != std::string::npos, constant && type == kI8);
      Tensor a(DType::u8, {1, 5}), b(type == kI8 ? DType::i8 : DType::u8, {5, 1});
      for (int64_t i = 0; i < 5; ++i) a.set_integer(i, 125), b.set_integer(i, type == kI8 ? 1 : 250);
      std::vector<Tensor> inputs{a};
      if (!constant) inputs.push_back(b);
      EXPECT_EQ(interpret(graph, inputs, {}).at(0).integer(0), type == kI8 ? 39 : 255) << constant;
    }
}

struct Weights {
  int64_t type = kU8;
  std::vector<int> codes, zeros;  ///< 4 x 2, one or two
};

std::string bytes_of(const std::vector<int>& values) {
  std::string bytes;
  for (const int v : values) bytes.push_back(static_cast<char>(v));
  return bytes;
}

Graph product_of(const Weights& w) {
  ModelBytes m;
  m.graph.nodes = {node("MatMulInteger", {"a", "b", "za", "zb"}, {"y"})};
  m.graph.initializers = {
      tensor("b", w.type, {4, 2}, bytes_of(w.codes)), zero("za", 10),
      tensor("zb", w.type, w.zeros.size() > 1 ? std::vector<int64_t>{2} : std::vector<int64_t>{}, bytes_of(w.zeros))};
  m.graph.inputs = {value_info("a", kU8, {"3", "4"})};
  m.graph.outputs = {value_info("y", 6, {})};
  return read_onnx_bytes(m.text());
}

/// Weights become i8 without zero points, with sums of rows where differences are beyond i8; sums stay what they are.
TEST(ProductOfCodes, HasPlainWeightsAndTheSameSums) {
  constexpr int64_t kI8 = 3;
  const std::pair<Weights, std::string> cases[] = {
      {{kI8, {1, -2, 3, -128, 127, 0, 5, 6}, {0}}, "matmul_integer"},
      {{kU8, {1, 2, 3, 128, 255, 0, 5, 200}, {128}}, "matmul_integer"},
      {{kI8, {1, -2, 3, 4, 100, 0, 5, 6}, {-20, 3}}, "matmul_integer"},
      {{kU8, {1, 2, 3, 128, 255, 0, 5, 200}, {117}}, "matmul_integer cast sub reduce_sum mul sub"},
      {{kU8, {1, 2, 3, 128, 255, 0, 5, 200}, {128, 0}}, "matmul_integer cast sub reduce_sum mul sub"},
      {{kI8, {-128, 2, 3, 127, 12, 0, 5, 99}, {40, -40}}, "matmul_integer cast sub reduce_sum mul sub"},
  };
  Tensor a(DType::u8, {3, 4});
  for (int64_t i = 0; i < a.elements(); ++i) a.set_integer(i, (i * 97 + 3) % 256);
  for (const auto& [w, read_as] : cases) {
    const Graph graph = product_of(w);
    EXPECT_EQ(operators_of(graph), read_as);
    const Tensor y = interpret(graph, {a}, {}).at(0);
    for (int64_t m = 0; m < 3; ++m)
      for (size_t n = 0; n < 2; ++n) {
        int64_t sum = 0;
        for (size_t k = 0; k < 4; ++k)
          sum += (a.integer(m * 4 + static_cast<int64_t>(k)) - 10) *
                 (w.codes[k * 2 + n] - w.zeros[w.zeros.size() > 1 ? n : 0]);
        EXPECT_EQ(y.integer(m * 2 + static_cast<int64_t>(n)), sum) << read_as;
      }
  }
}

}  // namespace
}  // namespace opfuse::test
