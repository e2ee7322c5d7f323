// What folds only when sizes are given: the model is read again, unless it was edited since.
#include "onnx/read_again.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_folder.hpp"
#include "driver/pipeline.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "ops/registry.hpp"

namespace opfuse::test {
namespace {

/// if (n > 2) relu(x) else neg(x), for x [n]
std::string if_by_size() {
  const auto branch = [](const char* op) {
    return GraphBytes{.nodes = {node(op, {"x"}, {"r"})}, .outputs = {value_info("r", kFloat, {"n"})}}.text();
  };
  return ModelBytes{.graph = {.nodes = {node("Shape", {"x"}, {"s"}), node("Squeeze", {"s"}, {"n"}),
                                        node("Greater", {"n", "two"}, {"c"}),
                                        node("If", {"c"}, {"y"},
                                             {graph_attribute("then_branch", branch("Relu")),
                                              graph_attribute("else_branch", branch("Neg"))})},
                              .initializers = {tensor("two", kInt64, {}, integers({2}))},
                              .inputs = {value_info("x", kFloat, {"n"})},
                              .outputs = {value_info("y", kFloat, {"n"})}}}
      .text();
}

std::string written(const TemporaryFolder& folder, const std::string& bytes) {
  const std::string path = folder.path("m.onnx");
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

bool has(const Graph& graph, const char* op) {
  for (const Node* node : graph.nodes())
    if (node->is(op)) return true;
  return false;
}

TEST(ReadAgain, AnIfIsTheBranchOfTheSizeGiven) {
  const TemporaryFolder folder;
  const Graph graph = read_onnx(written(folder, if_by_size()));
  ASSERT_TRUE(has(graph, "opaque"));
  Graph sized = graph.clone();
  std::vector<std::string> notes;
  bind_sizes(sized, {{"n", 5}}, &notes);
  EXPECT_TRUE(has(sized, "relu"));
  EXPECT_FALSE(has(sized, "opaque"));
  EXPECT_EQ(notes.size(), 1u);
  EXPECT_TRUE(has(*read_again(graph, {{"n", 1}}), "neg"));
}

TEST(ReadAgain, NotWhatWasEditedOrFoldsNoFurther) {
  const TemporaryFolder folder;
  Graph graph = read_onnx(written(folder, if_by_size()));
  EXPECT_FALSE(read_again(graph, {}));
  graph.set_outputs({graph.add_node(op_named("abs"), AttrMap{}, {graph.outputs()[0]})->output()});
  EXPECT_FALSE(read_again(graph, {{"n", 5}}));
  const Graph plain = read_onnx(written(folder, conv_relu().text()));
  EXPECT_FALSE(read_again(plain, {{"n", 5}}));
}

}  // namespace
}  // namespace opfuse::test
