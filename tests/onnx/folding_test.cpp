// What is decided while reading: the branch of an If, sequences of known length, operators of opset 1 to 6.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "interp/interpreter.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "opfuse/error.hpp"
#include "ops/run_op.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse::test {
namespace {

constexpr int64_t kBool = 9;

std::vector<double> run(const Graph& graph, const std::vector<Tensor>& inputs) {
  const Tensor y = interpret(graph, inputs)[0];
  std::vector<double> values;
  for (int64_t i = 0; i < y.elements(); ++i) values.push_back(y.real(i));
  return values;
}

std::string branch(const std::string& op, const std::string& inner) {
  return GraphBytes{.nodes = {node("Add", {"x", "x"}, {inner}, {}, "twice"), node(op, {inner}, {"r"}, {}, "last")},
                    .outputs = {value_info("r", kFloat, {"2"})}}
      .text();
}

ModelBytes with_if(bool condition, const Strings& more = {}) {
  Strings nodes{node("If", {"c"}, {"t"},
                     {graph_attribute("then_branch", branch("Neg", "inner")),
                      graph_attribute("else_branch", branch("Abs", "inner"))},
                     "choose"),
                node("Relu", {"t"}, {"y"})};
  nodes.insert(nodes.end(), more.begin(), more.end());
  return {.graph = {.nodes = nodes,
                    .initializers = {tensor("c", kBool, {}, std::string(1, condition ? '\1' : '\0'))},
                    .inputs = {value_info("x", kFloat, {"2"})},
                    .outputs = {value_info("y", kFloat, {"2"})}}};
}

/// Positions are a long table of floats, which is not shape arithmetic; an end that is taken from it is a number.
TEST(ReadFolding, AnEndOfRangeMayBeTakenFromALongTable) {
  std::vector<float> table(64);
  for (size_t i = 0; i < table.size(); ++i) table[i] = -static_cast<float>(i);
  const int64_t numbers[] = {0, 1, 5};
  const auto bytes = [](const void* data, size_t n) { return std::string(static_cast<const char*>(data), n); };
  ModelBytes m{.graph = {.nodes = {node("Abs", {"table"}, {"t"}), node("Gather", {"t", "five"}, {"end"}),
                                   node("Cast", {"end"}, {"e"}, {attribute("to", int64_t{7})}),
                                   node("Range", {"zero", "e", "one"}, {"r"}), node("Expand", {"x", "r"}, {"z"}),
                                   node("Relu", {"z"}, {"y"})},
                         .initializers = {tensor("table", kFloat, {64}, bytes(table.data(), 256)),
                                          tensor("zero", 7, {}, bytes(&numbers[1], 8)),
                                          tensor("one", 7, {}, bytes(&numbers[1], 8)),
                                          tensor("five", 7, {}, bytes(&numbers[2], 8))},
                         .inputs = {value_info("x", kFloat, {"1", "2", "3", "4"})},
                         .outputs = {value_info("y", kFloat, {"1", "2", "3", "4"})}}};
  const Graph graph = read_onnx_bytes(m.text());
  verify(graph);
  for (const Node* n : graph.nodes()) EXPECT_FALSE(n->is("opaque") || n->is("range"));
  EXPECT_EQ(graph.outputs()[0]->type.shape, (Shape{Dim(1), Dim(2), Dim(3), Dim(4)}));
  for (const auto& [limit, value] : std::map<std::string, int64_t>{{"settled_elements", 63}, {"settled_nodes", 2}}) {
    const Graph limited = read_onnx_bytes(m.text(), {}, {.limits = limits_with({{limit, value}})});
    const auto ranges = [](const Node* n) { return n->is("range"); };
    EXPECT_TRUE(std::any_of(limited.nodes().begin(), limited.nodes().end(), ranges)) << limit;
  }
}

/// A branch takes the size from the graph around it: no operand of the If names it.
TEST(ReadFolding, InputsThatDecideShapesWithinABranchAreFound) {
  const std::string inner = GraphBytes{
      .nodes = {node("Identity", {"size"}, {"s"}, {}, "take")},
      .outputs = {value_info(
          "s", 7, {"1"})}}.text();
  ModelBytes m{.graph = {.nodes = {node("If", {"c"}, {"shape"},
                                        {graph_attribute("then_branch", inner), graph_attribute("else_branch", inner)},
                                        "choose"),
                                   node("Expand", {"x", "shape"}, {"y"})},
                         .initializers = {tensor("c", kBool, {}, std::string(1, '\1'))},
                         .inputs = {value_info("x", kFloat, {"1"}), value_info("size", 7, {"1"})},
                         .outputs = {value_info("y", kFloat, {"n"})}}};
  ReadOptions options;
  options.fixed_inputs["size"] = Tensor::from_i64({3});
  EXPECT_EQ(read_onnx_bytes(m.text(), {}, options).outputs()[0]->type.shape, (Shape{Dim(3)}));
  const TemporaryFolder folder;
  std::ofstream(folder.path("m.onnx"), std::ios::binary) << m.text();
  const std::vector<ModelInput> inputs = onnx_inputs(folder.path("m.onnx"));
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_FALSE(inputs[0].decides_shapes);
  EXPECT_TRUE(inputs[1].decides_shapes);
}

TEST(ReadFolding, AnIfWithAConstantConditionIsItsBranch) {
  const std::vector<Tensor> x{reals(DType::f32, {-3, 1})};
  EXPECT_EQ(run(read_onnx_bytes(with_if(true).text()), x), (std::vector<double>{6, 0}));
  const Graph other = read_onnx_bytes(with_if(false).text());
  EXPECT_EQ(run(other, x), (std::vector<double>{6, 2}));
  EXPECT_NE(other.find_value("choose/inner"), nullptr);
  EXPECT_NE(other.find_value("t"), nullptr);
  verify(other);
}

/// Both branches, and a choice; a switch that the caller sets waits for its value.
TEST(ReadFolding, AnIfThatDataDecideTakesTheirBranch) {
  ModelBytes m = with_if(true);
  m.graph.initializers = {tensor("zero", kFloat, {}, floats({0}))};
  m.graph.nodes.insert(m.graph.nodes.begin(), {node("ReduceSum", {"x"}, {"sum"}, {attribute("keepdims", int64_t{0})}),
                                               node("Greater", {"sum", "zero"}, {"c"})});
  const Graph graph = read_onnx_bytes(m.text());
  verify(graph);
  EXPECT_EQ(run(graph, {reals(DType::f32, {-3, 4})}), (std::vector<double>{6, 0}));
  EXPECT_EQ(run(graph, {reals(DType::f32, {-3, 1})}), (std::vector<double>{6, 2}));
  ModelBytes flag = with_if(true);
  flag.graph.initializers = {};
  flag.graph.inputs.push_back(value_info("c", kBool, {}));
  const Graph waiting = read_onnx_bytes(flag.text());
  EXPECT_TRUE(
      std::any_of(waiting.nodes().begin(), waiting.nodes().end(), [](const Node* n) { return n->is("opaque"); }));
}

TEST(ReadFolding, NamesOfABranchAreItsOwn) {
  ModelBytes model = with_if(true, {node("Exp", {"x"}, {"inner"})});
  model.graph.outputs.push_back(value_info("inner", kFloat, {"2"}));
  const Graph graph = read_onnx_bytes(model.text());
  verify(graph);
  EXPECT_EQ(interpret(graph, {reals(DType::f32, {0, 0})})[1].real(0), 1);
}

TEST(ReadFolding, AComputedConditionStays) {
  ModelBytes model = with_if(true);
  model.graph.initializers.clear();
  model.graph.inputs.push_back(value_info("c", kBool, {}));
  const Graph graph = read_onnx_bytes(model.text());
  EXPECT_TRUE(graph.find_node("choose")->is("opaque"));
}

ModelBytes sequence(const Strings& nodes, const Strings& initializers = {}) {
  return {.graph = {.nodes = nodes,
                    .initializers = initializers,
                    .inputs = {value_info("x", kFloat, {"4"})},
                    .outputs = {value_info("y", kFloat, {"n"})}}};
}

TEST(ReadFolding, SequencesOfKnownLengthAreListsOfValues) {
  const Strings places{tensor("at", kInt64, {}, integers({-1})), tensor("parts", kInt64, {2}, integers({1, 3}))};
  const std::vector<Tensor> x{reals(DType::f32, {1, 2, 3, 4})};
  const auto split = node("SplitToSequence", {"x", "parts"}, {"s"}, {attribute("axis", int64_t{0})});
  EXPECT_EQ(run(read_onnx_bytes(sequence({split, node("SequenceAt", {"s", "at"}, {"y"})}, places).text()), x),
            (std::vector<double>{2, 3, 4}));
  const Strings nodes{split,
                      node("SequenceInsert", {"s", "x"}, {"l"}),
                      node("SequenceErase", {"l", "at"}, {"e"}),
                      node("SequenceConstruct", {"x", "x"}, {"c"}),
                      node("SequenceAt", {"c", "at"}, {"last"}),
                      node("SequenceInsert", {"e", "last"}, {"z"}),
                      node("ConcatFromSequence", {"z"}, {"y"}, {attribute("axis", int64_t{0})})};
  EXPECT_EQ(run(read_onnx_bytes(sequence(nodes, places).text()), x), (std::vector<double>{1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST(ReadFolding, ASequenceThatSomethingElseReadsIsKept) {
  const Graph graph = read_onnx_bytes(
      sequence({node("SequenceConstruct", {"x", "x"}, {"s"}, {}, "make"), node("Mystery", {"s"}, {"y"}, {}, "read")})
          .text());
  ASSERT_EQ(graph.nodes().size(), 2u);
  EXPECT_EQ(graph.nodes()[0]->name(), "make");
  EXPECT_EQ(graph.nodes()[1]->input(0), graph.nodes()[0]->output());
}

TEST(ReadFolding, PositionsOutsideASequenceAreRefused) {
  try {
    read_onnx_bytes(
        sequence({node("SequenceConstruct", {"x"}, {"s"}), node("SequenceAt", {"s", "at"}, {"y"}, {}, "take")},
                 {tensor("at", kInt64, {}, integers({1}))})
            .text());
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().node, "take");
  }
}

TEST(ReadFolding, Opset6SaysWhereItsOperandsMeet) {
  ModelBytes model{.graph = {.nodes = {node("Add", {"x", "b"}, {"a"},
                                            {attribute("broadcast", int64_t{1}), attribute("axis", int64_t{0})}),
                                       node("Reshape", {"a"}, {"y"},
                                            {attribute("shape", std::vector<int64_t>{-1}),
                                             attribute("consumed_inputs", std::vector<int64_t>{0})})},
                             .initializers = {tensor("b", kFloat, {2}, floats({10, 20}))},
                             .inputs = {value_info("x", kFloat, {"2", "2"})},
                             .outputs = {value_info("y", kFloat, {"4"})}},
                   .ir = 3,
                   .opset = 4};
  const Tensor x = reals(DType::f32, {1, 2, 3, 4}).reshaped({2, 2});
  EXPECT_EQ(run(read_onnx_bytes(model.text()), {x}), (std::vector<double>{11, 12, 23, 24}));
}

}  // namespace
}  // namespace opfuse::test
