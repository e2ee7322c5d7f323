// Mutated files, bounded and seeded: each is read and written back, or gives an opfuse::Error; none crashes.
#include <gtest/gtest.h>

#include <optional>

#include "onnx/model_bytes.hpp"
#include "onnx/mutate.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "opfuse/error.hpp"

namespace opfuse::test {
namespace {

std::vector<std::string> seeds() {
  ModelBytes functions = conv_relu();
  functions.graph.nodes = {node("F", {"x"}, {"y"}, {real_attribute("slope", 0.5f)}, "call", "mine")};
  functions.domains = {"mine"};
  functions.functions = {function(
      "mine", "F", {"a"}, {"b"}, {"slope"},
      {node("LeakyRelu", {"a"}, {"t"}, {reference_attribute("alpha", "slope", 1)}), node("Relu", {"t"}, {"b"})})};
  ModelBytes shapes = conv_relu();
  shapes.graph.inputs = {value_info("x", kFloat, {"batch", "2", "4", ""})};
  shapes.graph.nodes = {node("Shape", {"x"}, {"s"}), node("Reshape", {"x", "s"}, {"r"}),
                        node("Transpose", {"r"}, {"t"}, {attribute("perm", std::vector<int64_t>{0, 2, 3, 1})}),
                        node("Unsqueeze", {"t", "axes"}, {"y"})};
  shapes.graph.initializers = {tensor("axes", kInt64, {2}, integers({0, -1}))};
  ModelBytes control = conv_relu();
  const std::string branch =
      GraphBytes{.nodes = {node("Relu", {"c"}, {"o"})}, .outputs = {value_info("o", kFloat, {"1"})}}.text();
  control.graph.nodes = {node("Custom", {"x"}, {"c"}, {text_attribute("k", "v")}, "custom", "org.example"),
                         node("If", {"x"}, {"y"}, {graph_attribute("then_branch", branch)}, "if")};
  control.domains = {"org.example"};
  ModelBytes pool = conv_relu();
  pool.graph.nodes.push_back(node("MaxPool", {"y"}, {"p"},
                                  {attribute("kernel_shape", std::vector<int64_t>{2, 2}),
                                   attribute("pads", std::vector<int64_t>{0, 1, 0, 1}), attribute("ceil_mode", 1)}));
  return {conv_relu().text(), functions.text(), shapes.text(), control.text(), pool.text()};
}

std::string interface_of(const Graph& g) {
  std::string text;
  for (const Value* v : g.inputs()) text += v->name + ": " + v->type.text() + ", ";
  for (const Value* v : g.outputs()) text += "-> " + v->name + ": " + v->type.text();
  return text;
}

TEST(Fuzz, MutatedModelsAreReadAndWrittenBackOrRefusedNeverWorse) {
  const std::vector<std::string> models = seeds();
  for (const std::string& model : models) EXPECT_NO_THROW(read_onnx_bytes(model));
  Generator random(20240601);
  int refused = 0;
  constexpr int kRounds = 30000;
  for (int round = 0; round < kRounds; ++round) {
    const std::string bytes = mutated(models[random.below(models.size())], random);
    try {
      std::optional<Graph> graph;
      try {
        graph = read_onnx_bytes(bytes);
      } catch (const Error& error) {
        ++refused;
        EXPECT_NE(error.diagnostic().name, "internal") << "round " << round << ": " << error.diagnostic().text();
        continue;
      }
      verify(*graph);
      std::string why;
      // The first writing may say an operator in its opset's own form; from then on nothing changes.
      const Graph back = read_onnx_bytes(write_onnx_bytes(*graph));
      EXPECT_EQ(interface_of(*graph), interface_of(back)) << "round " << round;
      EXPECT_TRUE(equal(back, read_onnx_bytes(write_onnx_bytes(back)), &why)) << "round " << round << ": " << why;
    } catch (const std::exception& error) {
      FAIL() << "round " << round << ": " << error.what();
    }
  }
  EXPECT_GT(refused, kRounds / 2);
  EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace opfuse::test
