// Damaged and hostile files: each gives an opfuse::Error of the right code, none crashes, hangs or eats memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "opfuse/error.hpp"

namespace opfuse::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The diagnostic that reading gives; fails the test when it succeeds.
Diagnostic refusal(const std::string& bytes) {
  try {
    read_onnx_bytes(bytes);
  } catch (const Error& error) {
    return error.diagnostic();
  }
  ADD_FAILURE() << "the file was read";
  return {};
}

TEST(Malformed, EmptyFile) { EXPECT_EQ(refusal("").name, "malformed_model"); }

TEST(Malformed, OtherKindsOfFilesAreNamed) {
  const auto said = [](const std::string& bytes) { return refusal(bytes).message + " | " + refusal(bytes).hint; };
  EXPECT_THAT(said("version https://git-lfs.github.com/spec/v1\noid sha256:1234\n"), HasSubstr("git lfs pull"));
  EXPECT_THAT(said("\n <!DOCTYPE html><html><body>404</body></html>"), HasSubstr("an HTML page"));
  EXPECT_THAT(said("<HTML><head>"), HasSubstr("an HTML page"));
  EXPECT_THAT(said(std::string("PK\3\4\0\0\0\0", 8) + "archive/data.pkl"), HasSubstr("torch.onnx.export"));
  EXPECT_THAT(said(std::string("PK\3\4\0\0\0\0", 8) + "model.onnx"), HasSubstr("a zip archive"));
  EXPECT_THAT(said("\x80\x02}q\x01."), HasSubstr("pickle"));
  EXPECT_THAT(said(std::string(64, '\0')), HasSubstr("all zeros"));
  EXPECT_THAT(said(""), HasSubstr("empty"));
  const std::string whole = conv_relu().text();
  EXPECT_THAT(said(whole.substr(0, whole.size() - 5)),
              HasSubstr(fmt::format("it has {} bytes and should have {} at least", whole.size() - 5, whole.size())));
}

TEST(Malformed, EveryTruncationIsRefused) {
  const std::string whole = conv_relu().text();
  for (size_t size = 0; size < whole.size(); ++size) {
    const Diagnostic d = refusal(whole.substr(0, size));
    EXPECT_THAT(d.code, HasSubstr("E01")) << size;
  }
}

TEST(Malformed, ALengthOfTwoGigabytesInASmallFile) {
  Encoder model;
  model.integer(1, 8);
  model.length(7, size_t{2} << 30);
  const Diagnostic d = refusal(model.text() + std::string(900, 'x'));
  EXPECT_EQ(d.name, "malformed_model");
  EXPECT_THAT(d.message, HasSubstr("the file is truncated: it has 908 bytes and should have"));
}

TEST(Malformed, ALengthThatIsOnlySmallModuloTwoToThe32) {
  Encoder model;
  model.integer(1, 8);
  model.length(7, (size_t{1} << 32) + 4);
  EXPECT_EQ(refusal(model.text() + std::string(4, '\0')).name, "malformed_model");
}

TEST(Malformed, AWrongWireType) {
  Encoder model;
  model.bytes(1, "eight");  // ir_version is a number
  EXPECT_THAT(refusal(model.text()).message, HasSubstr("wire type"));
}

TEST(Malformed, NoGraph) {
  Encoder model;
  model.integer(1, 8);
  EXPECT_THAT(refusal(model.text()).message, HasSubstr("no graph"));
}

TEST(Malformed, NoOutputs) {
  ModelBytes m = conv_relu();
  m.graph.outputs.clear();
  EXPECT_EQ(refusal(m.text()).name, "malformed_model");
}

TEST(Malformed, OpsetsOutsideTheRange) {
  for (int64_t opset : {-1, 0, 29, 1000000}) {
    ModelBytes m = conv_relu();
    m.opset = opset;
    EXPECT_EQ(refusal(m.text()).name, "bad_opset") << opset;
  }
}

TEST(Malformed, AnIrVersionOfTheFuture) {
  ModelBytes m = conv_relu();
  m.ir = 99;
  EXPECT_EQ(refusal(m.text()).name, "bad_opset");
}

TEST(Malformed, ATensorThatNothingDefinesNamesItsReader) {
  ModelBytes m = conv_relu();
  m.graph.initializers.clear();
  const Diagnostic d = refusal(m.text());
  EXPECT_EQ(d.name, "missing_tensor");
  EXPECT_EQ(d.node, "conv");
  EXPECT_THAT(d.message, HasSubstr("\"w\""));
}

TEST(Malformed, AnOutputThatNothingDefines) {
  ModelBytes m = conv_relu();
  m.graph.outputs = {value_info("z", kFloat, {"1"})};
  EXPECT_EQ(refusal(m.text()).name, "missing_tensor");
}

TEST(Malformed, ACycle) {
  ModelBytes m = conv_relu();
  m.graph.nodes = {node("Add", {"x", "b"}, {"a"}, {}, "first"), node("Relu", {"a"}, {"b"}, {}, "second"),
                   node("Relu", {"b"}, {"y"}, {}, "third")};
  const Diagnostic d = refusal(m.text());
  EXPECT_EQ(d.name, "cyclic_graph");
  EXPECT_EQ(d.node, "first");
}

TEST(Malformed, ANodeThatReadsItself) {
  ModelBytes m = conv_relu();
  m.graph.nodes = {node("Relu", {"y"}, {"y"}, {}, "self")};
  EXPECT_EQ(refusal(m.text()).name, "cyclic_graph");
}

TEST(Malformed, ATensorDefinedTwice) {
  ModelBytes m = conv_relu();
  m.graph.nodes.push_back(node("Relu", {"x"}, {"y"}, {}, "again"));
  const Diagnostic d = refusal(m.text());
  EXPECT_EQ(d.name, "duplicate_name");
  EXPECT_EQ(d.node, "again");
}

TEST(Malformed, TwoInitializersOfOneName) {
  ModelBytes m = conv_relu();
  m.graph.initializers.push_back(m.graph.initializers[0]);
  EXPECT_EQ(refusal(m.text()).name, "duplicate_name");
}

TEST(Malformed, AnOutputListedTwice) {
  ModelBytes m = conv_relu();
  m.graph.outputs.push_back(m.graph.outputs[0]);
  EXPECT_EQ(refusal(m.text()).name, "duplicate_name");
}

TEST(Malformed, WeightsShorterThanTheirShape) {
  ModelBytes m = conv_relu();
  m.graph.initializers = {tensor("w", kFloat, {3, 2, 1, 1}, floats({1, 2, 3}))};
  const Diagnostic d = refusal(m.text());
  EXPECT_EQ(d.name, "bad_initializer");
  EXPECT_THAT(d.message, HasSubstr("\"w\" declares f32[3,2,1,1] (24 bytes) but has 12 bytes"));
}

TEST(Malformed, ATwoGigabyteTensorInASmallFile) {
  ModelBytes m = conv_relu();
  m.graph.initializers = {tensor("w", kFloat, {512, 1024, 1024}, floats({1}))};
  EXPECT_EQ(refusal(m.text()).name, "bad_initializer");
}

TEST(Malformed, ATypedListShorterThanItsShape) {
  Encoder t;
  t.integers(1, {1 << 20, 1 << 10}), t.integer(2, kInt64), t.bytes(8, "w"), t.integer(7, 5);
  ModelBytes m = conv_relu();
  m.graph.initializers = {t.text()};
  EXPECT_EQ(refusal(m.text()).name, "bad_initializer");
}

TEST(Malformed, ShapesThatOverflow) {
  const int64_t big = int64_t{1} << 40;
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{big, big},
                                                                            {INT64_MAX},
                                                                            {INT64_MAX, INT64_MAX, INT64_MAX},
                                                                            {int64_t{1} << 62, 4},
                                                                            {1 << 30, 1 << 30, 1 << 4}}) {
    ModelBytes m = conv_relu();
    m.graph.initializers = {tensor("w", kFloat, dims, floats({1}))};
    EXPECT_EQ(refusal(m.text()).name, "bad_dimension");
  }
}

TEST(Malformed, AnInputShapeThatOverflows) {
  ModelBytes m = conv_relu();
  m.graph.inputs = {value_info("x", kFloat, {"4294967296", "4294967296", "4294967296", "4294967296"})};
  EXPECT_EQ(refusal(m.text()).name, "bad_dimension");
}

TEST(Malformed, NegativeDimensions) {
  ModelBytes m = conv_relu();
  m.graph.initializers = {tensor("w", kFloat, {3, -2, -1, 1}, floats({1, 2, 3, 4, 5, 6}))};
  EXPECT_EQ(refusal(m.text()).name, "bad_dimension");
  m = conv_relu();
  m.graph.inputs = {value_info("x", kFloat, {"1", "-3", "4", "4"})};
  EXPECT_EQ(refusal(m.text()).name, "bad_dimension");
}

TEST(Malformed, ElementTypesThatDoNotExist) {
  for (int64_t type : {0, 14, 15, 99, -1}) {
    ModelBytes m = conv_relu();
    m.graph.inputs = {value_info("x", type, {"1", "2", "4", "4"})};
    EXPECT_EQ(refusal(m.text()).name, "unsupported_dtype") << type;
  }
}

TEST(Malformed, AttributesOfTheWrongType) {
  ModelBytes m = conv_relu();
  m.graph.nodes[0] = node("Conv", {"x", "w"}, {"c"}, {text_attribute("group", "two")}, "conv");
  const Diagnostic d = refusal(m.text());
  EXPECT_EQ(d.name, "bad_attribute");
  EXPECT_EQ(d.node, "conv");
}

TEST(Malformed, NonsenseConvolutionAttributes) {
  for (const auto& [name, values] :
       std::vector<std::pair<std::string, std::vector<int64_t>>>{{"strides", {0, 0}},
                                                                 {"strides", {-1, -1}},
                                                                 {"strides", {1}},
                                                                 {"dilations", {0, 1}},
                                                                 {"pads", {1}},
                                                                 {"pads", {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}},
                                                                 {"kernel_shape", {7, 7}}}) {
    ModelBytes m = conv_relu();
    m.graph.nodes[0] = node("Conv", {"x", "w"}, {"c"}, {attribute(name, values)}, "conv");
    const Diagnostic d = refusal(m.text());
    EXPECT_EQ(d.node, "conv") << name;
    EXPECT_NE(d.name, "internal") << name;
  }
}

TEST(Malformed, TooManyOrTooFewOperands) {
  ModelBytes m = conv_relu();
  m.graph.nodes[1] = node("Relu", {"c", "x", "x"}, {"y"}, {}, "relu");
  EXPECT_EQ(refusal(m.text()).name, "arity_mismatch");
  m.graph.nodes[1] = node("Relu", {}, {"y"}, {}, "relu");
  EXPECT_EQ(refusal(m.text()).name, "arity_mismatch");
  m.graph.nodes[1] = node("Relu", {""}, {"y"}, {}, "relu");
  EXPECT_EQ(refusal(m.text()).name, "arity_mismatch");
}

TEST(Malformed, AConstantWithoutAValue) {
  ModelBytes m = conv_relu();
  m.graph.nodes.push_back(node("Constant", {}, {"k"}));
  EXPECT_EQ(refusal(m.text()).name, "bad_attribute");
}

TEST(Malformed, ASparseInitializer) {
  ModelBytes m = conv_relu();
  Encoder sparse;
  sparse.bytes(15, "");
  m.graph.extra = sparse.text();
  EXPECT_EQ(refusal(m.text()).name, "unsupported_op");
}

TEST(Malformed, AFunctionThatCallsItself) {
  ModelBytes m = conv_relu();
  m.graph.nodes = {node("F", {"x"}, {"y"}, {}, "call", "mine")};
  m.functions = {function("mine", "F", {"a"}, {"b"}, {}, {node("F", {"a"}, {"b"}, {}, "inner", "mine")}, {"mine"})};
  EXPECT_EQ(refusal(m.text()).name, "malformed_model");
}

TEST(Malformed, FunctionsThatDoubleSixtyTimes) {
  ModelBytes m = conv_relu();
  m.graph.nodes = {node("F0", {"x"}, {"y"}, {}, "call", "mine")};
  for (int i = 0; i < 60; ++i) {
    const std::string next = "F" + std::to_string(i + 1);
    m.functions.push_back(
        function("mine", "F" + std::to_string(i), {"a"}, {"b"}, {},
                 {node(next, {"a"}, {"t"}, {}, "", "mine"), node(next, {"t"}, {"b"}, {}, "", "mine")}));
  }
  m.functions.push_back(function("mine", "F60", {"a"}, {"b"}, {}, {}));
  const Diagnostic d = refusal(m.text());
  EXPECT_EQ(d.name, "malformed_model");
  EXPECT_EQ(d.node, "call") << "the call that expands, not one that was inlined on the way";
  EXPECT_NE(d.hint.find("--limit inlined_nodes"), std::string::npos) << d.hint;
}

/// Calls F0 -> F1 -> ... -> F(count): one node at the end.
ModelBytes nested_functions(int count) {
  ModelBytes m = conv_relu();
  m.domains = {"mine"};
  for (int i = 0; i < count; ++i)
    m.functions.push_back(function("mine", "F" + std::to_string(i), {"a"}, {"b"}, {},
                                   {node("F" + std::to_string(i + 1), {"a"}, {"b"}, {}, "", "mine")}, {"mine"}));
  m.functions.push_back(function("mine", "F" + std::to_string(count), {"a"}, {"b"}, {}, {node("Relu", {"a"}, {"b"})}));
  m.graph.nodes = {node("F0", {"x"}, {"y"}, {}, "call", "mine")};
  return m;
}

TEST(Malformed, TheLimitOfInlinedNodesCanBeSet) {
  const std::string model = nested_functions(5).text();  // six calls and a node
  ReadOptions options;
  options.limits = limits_with({{"inlined_nodes", 6}});
  EXPECT_THROW(read_onnx_bytes(model, {}, options), Error);
  options.limits = limits_with({{"inlined_nodes", 7}});
  EXPECT_EQ(read_onnx_bytes(model, {}, options).nodes().size(), 1u);
}

TEST(Malformed, FunctionsThatNestTooDeepAreFoundWhereverTheyAreCalledFirst) {
  ModelBytes m = nested_functions(5000);
  EXPECT_EQ(refusal(m.text()).name, "malformed_model");
  m.graph.nodes.clear();
  for (int i = 5000; i >= 0; i -= 40)  // each call alone is shallow where the one before was counted
    m.graph.nodes.push_back(node("F" + std::to_string(i), {"x"}, {"y" + std::to_string(i)}, {}, "", "mine"));
  EXPECT_EQ(refusal(m.text()).name, "malformed_model");
}

TEST(Malformed, HowDeepFunctionsNestCanBeSet) {
  const std::string model = nested_functions(100).text();
  EXPECT_NE(refusal(model).hint.find("--limit nested_functions=N"), std::string::npos);
  ReadOptions options;
  options.limits = limits_with({{"nested_functions", 200}});
  EXPECT_EQ(read_onnx_bytes(model, {}, options).nodes().size(), 1u);
}

TEST(Malformed, GraphsNestedAThousandDeep) {
  GraphBytes inner{.nodes = {node("Relu", {"x"}, {"y"})}, .outputs = {value_info("y", kFloat, {"1"})}};
  std::string graph = inner.text();
  for (int i = 0; i < 1000; ++i)
    graph = GraphBytes{.nodes = {node("If", {"c"}, {"y"}, {graph_attribute("then_branch", graph)})}}.text();
  ModelBytes m = conv_relu();
  m.graph.nodes.push_back(node("If", {"x"}, {"z"}, {graph_attribute("then_branch", graph)}, "deep"));
  EXPECT_EQ(refusal(m.text()).name, "malformed_model");
}

/// `count` nodes with a wrong attribute in a row, each reading the one before.
ModelBytes wrong_chain(int count) {
  ModelBytes m = conv_relu();
  m.graph.nodes.clear();
  m.graph.initializers.clear();
  for (int i = 0; i < count; ++i)
    m.graph.nodes.push_back(node("Softmax", {i == 0 ? "x" : "t" + std::to_string(i - 1)}, {"t" + std::to_string(i)},
                                 {text_attribute("axis", "last")}, "wrong" + std::to_string(i)));
  m.graph.nodes.push_back(node("Relu", {"t" + std::to_string(count - 1)}, {"y"}, {}, "right"));
  return m;
}

TEST(Malformed, AllWrongNodesAreToldAtOnceAndOnlyThose) {
  const Diagnostic d = refusal(wrong_chain(3).text());
  EXPECT_EQ(d.name, "bad_attribute");
  EXPECT_EQ(d.node, "wrong0");
  ASSERT_EQ(d.operands.size(), 2u) << d.text();
  EXPECT_THAT(d.operands[0], HasSubstr("also at node \"wrong1\" (Softmax"));
  EXPECT_THAT(d.operands[1], HasSubstr("bad_attribute"));
  EXPECT_THAT(d.text(), Not(HasSubstr("right")));
}

TEST(Malformed, ReadingStopsAtTwentyProblemsAndSaysSo) {
  const Diagnostic d = refusal(wrong_chain(50).text());
  ASSERT_EQ(d.operands.size(), 20u);
  EXPECT_THAT(d.operands.back(), HasSubstr("reading stopped at 20 problems"));
}

TEST(Malformed, WhatCouldBeReadIsGivenBesideAllProblems) {
  ModelBytes m = wrong_chain(30);
  m.graph.nodes.push_back(node("Mine", {"w"}, {"z"}, {}, "mine"));
  m.graph.initializers = {tensor("w", kFloat, {4, 3, 3, 3}, floats({1}))};
  std::vector<Diagnostic> problems;
  std::optional<Graph> rest;
  ReadOptions options;
  options.problems = &problems, options.rest = &rest, options.limits.problems = 1000;
  EXPECT_THROW(read_onnx_bytes(m.text(), {}, options), Error);
  EXPECT_EQ(problems.size(), 31u);
  ASSERT_TRUE(rest);
  EXPECT_NE(rest->find_node("mine"), nullptr);
}

TEST(Malformed, AllWrongInitializersAreToldAtOnce) {
  ModelBytes m = conv_relu();
  m.graph.initializers = {tensor("w", kFloat, {4, 3, 3, 3}, floats({1})), tensor("v", kFloat, {8}, floats({1, 2}))};
  const Diagnostic d = refusal(m.text());
  EXPECT_THAT(d.message, HasSubstr("\"w\""));
  ASSERT_EQ(d.operands.size(), 1u) << d.text();
  EXPECT_THAT(d.operands[0], HasSubstr("\"v\""));
}

TEST(Malformed, ANodeWithoutResultsIsKept) {
  Encoder n;
  n.bytes(1, "x"), n.bytes(4, "Relu"), n.bytes(10, "a field we do not know");
  ModelBytes m = conv_relu();
  m.graph.nodes.push_back(n.text());
  EXPECT_NO_THROW(write_onnx_bytes(read_onnx_bytes(m.text())));
}

TEST(Malformed, AnOutputThatIsAnInputOfAnotherType) {
  ModelBytes m = conv_relu();
  m.graph.outputs.push_back(value_info("x", kFloat, {"9", "9"}));
  const Graph back = read_onnx_bytes(write_onnx_bytes(read_onnx_bytes(m.text())));
  EXPECT_EQ(back.inputs()[0]->type.text(), "f32[1,2,4,4]");
}

TEST(Malformed, AReshapeToMoreThanEverything) {
  ModelBytes m = conv_relu();
  m.graph.initializers.push_back(tensor("s", kInt64, {3}, integers({INT64_MAX, INT64_MAX, 2})));
  m.graph.nodes[1] = node("Reshape", {"c", "s"}, {"y"}, {}, "reshape");
  const Diagnostic d = refusal(m.text());
  EXPECT_EQ(d.node, "reshape");
  EXPECT_NE(d.name, "internal");
}

}  // namespace
}  // namespace opfuse::test
