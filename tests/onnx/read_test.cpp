// What the reader makes of well-formed models: types, constants, functions, opaque nodes, opset differences.
#include "onnx/read.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "interp/interpreter.hpp"
#include "ir/fix_input.hpp"
#include "onnx/model_bytes.hpp"
#include "opfuse/error.hpp"
#include "ops/registry.hpp"
#include "ops/resize.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Graph read(const ModelBytes& model, const ReadOptions& options = {}) {
  Graph graph = read_onnx_bytes(model.text(), {}, options);
  verify(graph);
  return graph;
}

template <class F>
Diagnostic refusal(F&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.diagnostic();
  }
  ADD_FAILURE() << "no error";
  return {};
}

/// One node over x: f32[2,3,4] and the given initializers.
ModelBytes one_node(const std::string& n, const Strings& initializers = {}, int64_t opset = 17) {
  return {.graph = {.nodes = {n},
                    .initializers = initializers,
                    .inputs = {value_info("x", kFloat, {"2", "3", "4"})},
                    .outputs = {value_info("y", kFloat, {})}},
          .opset = opset};
}

std::string output_type(const ModelBytes& model) { return read(model).outputs()[0]->type.text(); }

TEST(Read, BuildsTypedNodesWithTheirSources) {
  const Graph g = read(conv_relu());
  ASSERT_EQ(g.nodes().size(), 2u);
  EXPECT_TRUE(g.nodes()[0]->is("conv"));
  EXPECT_EQ(g.nodes()[0]->sources[0], (Source{"conv", "Conv", "", 17}));
  EXPECT_EQ(g.nodes()[0]->output()->name, "c");
  EXPECT_EQ(g.nodes()[0]->output()->type.text(), "f32[1,3,4,4]");
  EXPECT_EQ(g.outputs()[0]->name, "y");
  EXPECT_EQ(g.inputs()[0]->name, "x");
  EXPECT_EQ(g.find_value("w")->constant->real(5), 6);
}

TEST(Read, UnnamedNodesAreNamedAfterTheirResult) {
  ModelBytes m = conv_relu();
  m.graph.nodes[1] = node("Relu", {"c"}, {"y"});
  EXPECT_EQ(read(m).nodes()[1]->name(), "Relu_y");
}

TEST(Read, NodesInAnyOrderAreSorted) {
  ModelBytes m = conv_relu();
  std::swap(m.graph.nodes[0], m.graph.nodes[1]);
  const Graph g = read(m);
  EXPECT_TRUE(g.nodes()[0]->is("conv"));
}

TEST(Read, WeightsShareTheFileWhereItIsAligned) {
  TemporaryFolder folder;
  ModelBytes m = conv_relu();
  int shared = 0;
  for (size_t padding = 0; padding < 4; ++padding) {  // one of four paddings aligns the weights
    m.graph.outputs[0] = value_info("y" + std::string(padding, '_'), kFloat, {"1", "3", "4", "4"});
    m.graph.nodes[1] = node("Relu", {"c"}, {"y" + std::string(padding, '_')});
    const Graph g = read_onnx(folder.write("m.onnx", m.text()));
    const Tensor& w = *g.find_value("w")->constant;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(w.data()) % 4, 0u);
    EXPECT_EQ(w.real(3), 4);
    ++shared;
  }
  EXPECT_EQ(shared, 4);
}

TEST(Read, AnInitializerThatIsAlsoAnInputIsAConstant) {
  ModelBytes m = conv_relu();
  m.graph.inputs.push_back(value_info("w", kFloat, {"3", "2", "1", "1"}));
  const Graph g = read(m);
  EXPECT_EQ(g.inputs().size(), 1u);
  EXPECT_TRUE(g.find_value("w")->is_constant());
}

TEST(Read, DimensionNamesAreSymbolsAndUnnamedOnesAreFresh) {
  ModelBytes m = conv_relu();
  m.graph.inputs = {value_info("x", kFloat, {"batch size", "2", "", ""})};
  EXPECT_EQ(read(m).outputs()[0]->type.text(), "f32[\"batch size\",3,unk__0,unk__1]");
}

TEST(Read, NamesThatSayNothingAreNoNames) {
  ModelBytes m = conv_relu();
  for (const std::string name : {"?", "-1", "None"}) {
    m.graph.inputs = {value_info("x", kFloat, {"n", "2", name, name})};
    EXPECT_EQ(read(m).inputs()[0]->type.text(), "f32[n,2,unk__0,unk__1]") << name;
  }
}

TEST(Read, FixedInputsAreConstants) {
  ModelBytes m = conv_relu();
  m.graph.inputs.push_back(value_info("axes", kInt64, {"k"}));
  m.graph.nodes.push_back(node("ReduceSum", {"y", "axes"}, {"z"}, {}, "sum"));
  m.graph.outputs = {value_info("z", kFloat, {})};
  const Graph g = read(m, {.fixed_inputs = {{"axes", Tensor::from_i64({1, 2})}}});
  EXPECT_EQ(g.inputs().size(), 1u);
  EXPECT_EQ(g.outputs()[0]->type.shape.rank(), 4u);
  ASSERT_EQ(fixed_inputs(g).size(), 1u);
  EXPECT_TRUE(fixed_inputs(g.clone())[0].second.same_bits(Tensor::from_i64({1, 2})));
  try {
    read(m);
    FAIL() << "axes are not known";
  } catch (const Error& error) {
    EXPECT_NE(error.diagnostic().hint.find("--input axes="), std::string::npos) << error.what();
  }
  EXPECT_THROW(read(m, {.fixed_inputs = {{"axis", Tensor::from_i64({1})}}}), Error);
}

TEST(Read, MadeUpNamesAvoidNamesInTheFile) {
  ModelBytes m = conv_relu();
  m.graph.inputs = {value_info("x", kFloat, {"unk__0", "2", "", "4"})};
  EXPECT_EQ(read(m).inputs()[0]->type.text(), "f32[unk__0,2,unk__1,4]");
}

TEST(Read, GivenDimensionsAreBound) {
  ModelBytes m = conv_relu();
  m.graph.inputs = {value_info("x", kFloat, {"n", "2", "h", "4"})};
  EXPECT_EQ(read(m, {.dimensions = {{"n", 5}}}).outputs()[0]->type.text(), "f32[5,3,h,4]");
}

TEST(Read, ConstantsInAllTheirForms) {
  ModelBytes m = conv_relu();
  m.graph.nodes = {node("Constant", {}, {"a"}, {tensor_attribute("value", tensor("", kFloat, {2}, floats({1, 2})))}),
                   node("Constant", {}, {"b"}, {real_attribute("value_float", 2.5f)}),
                   node("Constant", {}, {"c"}, {attribute("value_int", 7)}),
                   node("Constant", {}, {"d"}, {attribute("value_ints", std::vector<int64_t>{1, 2, 3})})};
  m.graph.outputs = {value_info("a", kFloat, {}), value_info("b", kFloat, {}), value_info("c", kInt64, {}),
                     value_info("d", kInt64, {})};
  const Graph g = read(m);
  EXPECT_EQ(g.outputs()[0]->constant->real(1), 2);
  EXPECT_EQ(g.outputs()[1]->type.text(), "f32[]");
  EXPECT_EQ(g.outputs()[1]->constant->real(0), 2.5);
  EXPECT_EQ(g.outputs()[2]->type.text(), "i64[]");
  EXPECT_THAT(g.outputs()[3]->constant->to_i64(), ElementsAre(1, 2, 3));
}

TEST(Read, ShapeArithmeticFoldsAndSymbolsFlowThroughIt) {
  ModelBytes m = conv_relu();
  m.graph.inputs = {value_info("x", kFloat, {"n", "2", "4", "4"})};
  m.graph.nodes = {node("Shape", {"x"}, {"s"}, {attribute("start", 0), attribute("end", 1)}),
                   node("Concat", {"s", "rest"}, {"t"}, {attribute("axis", int64_t{0})}),
                   node("Reshape", {"x", "t"}, {"y"})};
  m.graph.initializers = {tensor("rest", kInt64, {2}, integers({8, 4}))};
  EXPECT_EQ(read(m).outputs()[0]->type.text(), "f32[n,8,4]");
  const Graph fixed = read(m, {.dimensions = {{"n", 3}}});
  EXPECT_EQ(fixed.nodes().size(), 1u);
  EXPECT_EQ(fixed.outputs()[0]->type.text(), "f32[3,8,4]");
}

TEST(Read, InputsMayBeReadAsConstants) {
  ModelBytes m = conv_relu();
  m.graph.inputs.push_back(value_info("shape", kInt64, {"2"}));
  m.graph.nodes[1] = node("Reshape", {"c", "shape"}, {"y"});
  EXPECT_EQ(read(m).outputs()[0]->type.text(), "f32[*]");
  const Graph g = read(m, {.fixed_inputs = {{"shape", Tensor::from_i64({6, 8})}}});
  EXPECT_EQ(g.inputs().size(), 1u);
  EXPECT_EQ(g.outputs()[0]->type.text(), "f32[6,8]");
}

// ---- functions

ModelBytes with_function() {
  ModelBytes m = conv_relu();
  m.graph.nodes = {node("Outer", {"x"}, {"y"}, {real_attribute("slope", 0.5f)}, "call", "mine")};
  m.domains = {"mine"};
  m.functions = {function("mine", "Outer", {"a"}, {"b"}, {"slope"},
                          {node("Inner", {"a"}, {"t"}, {reference_attribute("alpha", "slope", 1)}, "first", "mine"),
                           node("Inner", {"t"}, {"b"}, {real_attribute("alpha", 0.25f)}, "second", "mine")},
                          {"mine"}),
                 function("mine", "Inner", {"p"}, {"q"}, {"alpha"},
                          {node("LeakyRelu", {"p"}, {"r"}, {reference_attribute("alpha", "alpha", 1)}, "leaky"),
                           node("Relu", {"r"}, {"q"})})};
  return m;
}

TEST(Read, FunctionsAreInlinedWithTheirAttributes) {
  const Graph g = read(with_function());
  ASSERT_EQ(g.nodes().size(), 4u);
  EXPECT_EQ(g.nodes()[0]->name(), "call/first/leaky");
  EXPECT_EQ(std::get<double>(*find(g.nodes()[0]->attr_map(), "alpha")), 0.5);
  EXPECT_EQ(std::get<double>(*find(g.nodes()[2]->attr_map(), "alpha")), 0.25);
  EXPECT_EQ(g.outputs()[0]->name, "y");
  EXPECT_EQ(g.outputs()[0]->producer, g.nodes()[3]);
}

TEST(Read, AFunctionCalledTwiceKeepsItsTensorsApart) {
  ModelBytes m = with_function();
  m.graph.nodes = {node("Inner", {"x"}, {"m"}, {}, "", "mine"), node("Inner", {"m"}, {"y"}, {}, "", "mine")};
  const Graph g = read(m);
  EXPECT_EQ(g.nodes().size(), 4u);
  EXPECT_EQ(std::get<double>(*find(g.nodes()[0]->attr_map(), "alpha")), 0.01);
}

TEST(Read, AFunctionThatReturnsItsOperandBecomesAnIdentity) {
  ModelBytes m = conv_relu();
  m.graph.nodes = {node("Pass", {"x"}, {"y"}, {}, "", "mine")};
  m.functions = {function("mine", "Pass", {"a"}, {"a"}, {}, {})};
  const Graph g = read(m);
  ASSERT_EQ(g.nodes().size(), 1u);
  EXPECT_TRUE(g.nodes()[0]->is("identity"));
}

// ---- opaque nodes

TEST(Read, UnknownOperatorsStayOpaqueWithTheirDeclaredTypes) {
  ModelBytes m = conv_relu();
  m.graph.nodes[0] = node("Secret", {"x", "", "w"}, {"c"}, {attribute("k", 3)}, "secret", "org.example");
  m.domains = {"org.example"};
  m.graph.values = {value_info("c", kFloat, {"1", "3", "4", "4"})};
  const Graph g = read(m);
  ASSERT_TRUE(g.nodes()[0]->is("opaque"));
  EXPECT_EQ(g.nodes()[0]->inputs[1], nullptr);
  EXPECT_EQ(g.nodes()[0]->output()->type.text(), "f32[1,3,4,4]");
  EXPECT_EQ(g.outputs()[0]->type.text(), "f32[1,3,4,4]");
  EXPECT_EQ(g.nodes()[0]->sources[0].domain, "org.example");
}

TEST(Read, WhatFollowsAnUntypedOpaqueNodeHasUnknownTypes) {
  ModelBytes m = conv_relu();
  m.graph.nodes[0] = node("Secret", {"x"}, {"c"}, {}, "secret", "org.example");
  m.domains = {"org.example"};
  const Graph g = read(m);
  EXPECT_TRUE(g.nodes()[1]->is("relu"));
  EXPECT_EQ(g.outputs()[0]->type.dtype, DType::unknown);
}

TEST(Read, UnsupportedVariantsOfKnownOperatorsStayOpaqueWithTheReason) {
  ModelBytes m = conv_relu();
  m.graph.nodes[1] = node("Cast", {"c"}, {"y"}, {attribute("to", 8)});
  const Graph g = read(m);
  ASSERT_TRUE(g.nodes()[1]->is("opaque"));
  EXPECT_THAT(static_cast<const OpaqueAttrs*>(g.nodes()[1]->attrs())->reason, HasSubstr("STRING"));
}

TEST(Read, SubgraphsKeepWhatTheyReadFromOutside) {
  ModelBytes m = conv_relu();
  const std::string branch =
      GraphBytes{.nodes = {node("Mul", {"c", "w"}, {"o"})}, .outputs = {value_info("o", kFloat, {"1"})}}.text();
  m.graph.nodes[1] = node("If", {"x"}, {"y"}, {graph_attribute("then_branch", branch)}, "if");
  const Graph g = read(m);
  ASSERT_TRUE(g.nodes()[1]->is("opaque"));
  EXPECT_EQ(g.nodes()[1]->inputs.size(), 3u);  // x, and c and w by name
}

TEST(Read, AnAttributeNobodyKnowsMakesTheNodeOpaque) {
  ModelBytes m = conv_relu();
  m.graph.nodes[1] = node("Relu", {"c"}, {"y"}, {attribute("fancy", 1)});
  EXPECT_TRUE(read(m).nodes()[1]->is("opaque"));
}

// ---- differences between opsets

TEST(Read, ClipTakesItsLimitsFromAttributesOrOperands) {
  for (const ModelBytes& m :
       {one_node(node("Clip", {"x"}, {"y"}, {real_attribute("min", -1), real_attribute("max", 1)}), {}, 7),
        one_node(node("Clip", {"x", "lo", "hi"}, {"y"}),
                 {tensor("lo", kFloat, {}, floats({-1})), tensor("hi", kFloat, {}, floats({1}))}, 11)}) {
    const Graph g = read(m);
    Tensor x(DType::f32, {2, 3, 4});
    x.set_real(0, 5);
    x.set_real(1, -5);
    const Tensor y = interpret(g, {x})[0];
    EXPECT_EQ(y.real(0), 1);
    EXPECT_EQ(y.real(1), -1);
  }
}

TEST(Read, SqueezeAndUnsqueezeTakeAxesEitherWay) {
  const std::string axes = tensor("a", kInt64, {2}, integers({0, 4}));
  EXPECT_EQ(
      output_type(one_node(node("Unsqueeze", {"x"}, {"y"}, {attribute("axes", std::vector<int64_t>{0, 4})}), {}, 11)),
      "f32[1,2,3,4,1]");
  EXPECT_EQ(output_type(one_node(node("Unsqueeze", {"x", "a"}, {"y"}), {axes}, 13)), "f32[1,2,3,4,1]");
}

TEST(Read, ReductionsTakeAxesEitherWay) {
  const std::string axes = tensor("a", kInt64, {1}, integers({-1}));
  const std::vector<int64_t> last = {-1};
  EXPECT_EQ(output_type(one_node(node("ReduceMean", {"x"}, {"y"}, {attribute("axes", last)}), {}, 13)), "f32[2,3,1]");
  EXPECT_EQ(output_type(one_node(node("ReduceMean", {"x", "a"}, {"y"}), {axes}, 18)), "f32[2,3,1]");
  EXPECT_EQ(
      output_type(one_node(node("ReduceSum", {"x", "a"}, {"y"}, {attribute("keepdims", int64_t{0})}), {axes}, 13)),
      "f32[2,3]");
}

TEST(Read, SoftmaxBeforeOpset13Flattens) {
  Tensor x(DType::f32, {2, 3, 4});
  const auto first = [&](int64_t opset) {
    return interpret(read(one_node(node("Softmax", {"x"}, {"y"}), {}, opset)), {x})[0].real(0);
  };
  EXPECT_NEAR(first(12), 1.0 / 12, 1e-6);  // axis 1, over 3 * 4 elements
  EXPECT_NEAR(first(13), 1.0 / 4, 1e-6);   // the last axis
}

TEST(Read, DropoutIsAnIdentityUnlessItTrains) {
  const std::string yes = tensor("t", 9, {}, "\x01"), ratio = tensor("r", kFloat, {}, floats({0.5f}));
  EXPECT_EQ(output_type(one_node(node("Dropout", {"x"}, {"y"}, {real_attribute("ratio", 0.5f)}), {}, 7)), "f32[2,3,4]");
  EXPECT_EQ(output_type(one_node(node("Dropout", {"x", "r"}, {"y"}), {ratio}, 13)), "f32[2,3,4]");
  EXPECT_TRUE(read(one_node(node("Dropout", {"x", "r", "t"}, {"y"}), {ratio, yes}, 13)).nodes()[0]->is("opaque"));
}

// ---- external data

ModelBytes with_external(const std::vector<std::pair<std::string, std::string>>& entries) {
  ModelBytes m = conv_relu();
  m.graph.initializers = {external_tensor("w", {3, 2, 1, 1}, entries)};
  return m;
}

TEST(Read, ExternalDataIsFoundBesideTheModel) {
  TemporaryFolder folder;
  folder.write("weights.bin", std::string(8, 'x') + floats({1, 2, 3, 4, 5, 6}));
  const std::string path =
      folder.write("m.onnx", with_external({{"location", "weights.bin"}, {"offset", "8"}, {"length", "24"}}).text());
  EXPECT_EQ(read_onnx(path).find_value("w")->constant->real(5), 6);
}

TEST(Read, ExternalDataOutsideItsFileIsRefused) {
  TemporaryFolder folder;
  folder.write("weights.bin", floats({1, 2, 3}));
  for (const char* offset : {"0", "4", "12", "13", "18446744073709551615", "-1", "x"}) {
    const std::string path =
        folder.write("m.onnx", with_external({{"location", "weights.bin"}, {"offset", offset}}).text());
    const Diagnostic d = refusal([&] { read_onnx(path); });
    EXPECT_EQ(d.name, "bad_external_data") << offset;
    EXPECT_THAT(d.message, HasSubstr("\"w\""));
  }
}

TEST(Read, ExternalDataOutsideTheFolderIsRefused) {
  TemporaryFolder outside, folder;
  outside.write("secret.bin", floats({1, 2, 3, 4, 5, 6}));
  std::filesystem::create_symlink(outside.path("secret.bin"), folder.path("link.bin"));
  for (const std::string& location :
       {outside.path("secret.bin"), "../" + outside.path("secret.bin"), std::string("a/../../x"),
        std::string("link.bin"), std::string("missing.bin"), std::string(), std::string("a\0b", 3)}) {
    const std::string path = folder.write("m.onnx", with_external({{"location", location}}).text());
    EXPECT_EQ(refusal([&] { read_onnx(path); }).name, "bad_external_data") << location;
  }
}

TEST(Read, RealModelsAreRead) {
  const char* models = std::getenv("OPFUSE_TEST_MODELS");
  if (!models) GTEST_SKIP() << "OPFUSE_TEST_MODELS is not set";
  for (const char* name : {"resnet50", "resnet50_bn", "mobilenet_v2", "bert_base", "vit_b_16", "convnext_tiny"}) {
    const Graph g = read_onnx(std::string(models) + "/" + name + ".onnx");
    verify(g);
    for (const Value* output : g.outputs()) EXPECT_TRUE(output->type.shape.is_static()) << name;
  }
}

TEST(Read, AFileThatIsNotThere) {
  EXPECT_EQ(refusal([] { read_onnx("/nonexistent/model.onnx"); }).name, "file_not_found");
  EXPECT_EQ(refusal([] { read_onnx("/tmp"); }).name, "file_not_found");
}

/// Resize by 0.4 of axes that are open: no expression is its extent.
TEST(Read, WhatOnlySizesSettleWaitsForThem) {
  ModelBytes m = conv_relu();
  m.graph.nodes = {node("Resize", {"x", "", "s"}, {"y"}, {text_attribute("mode", "linear")}, "resize")};
  m.graph.initializers = {tensor("s", kFloat, {4}, floats({1, 1, 0.4f, 0.4f}))};
  m.graph.inputs = {value_info("x", kFloat, {"1", "2", "H", "W"})};
  m.graph.outputs = {value_info("y", kFloat, {"1", "2", "h", "w"})};
  const TemporaryFolder folder;
  const std::string path = folder.path("m.onnx");
  std::ofstream(path, std::ios::binary) << m.text();
  EXPECT_EQ(read_onnx(path).nodes()[0]->op, opaque_op());
  ReadOptions options;
  options.dimensions = {{"H", 5}, {"W", 10}};
  EXPECT_EQ(read_onnx(path, options).outputs()[0]->type.shape, (Shape{1, 2, 2, 4}));
}

/// 20 x 20 elements are read for a result of the whole filter; attributes are those of the node.
TEST(Read, FiltersWiderThanAKernelReadsRunAxisByAxis) {
  ModelBytes m = conv_relu();
  m.opset = 18;
  m.graph.nodes = {node("Resize", {"x", "", "", "s"}, {"y"},
                        {text_attribute("mode", "linear"), attribute("antialias", int64_t{1})}, "resize")};
  m.graph.initializers = {tensor("s", kInt64, {4}, integers({1, 2, 6, 6}))};
  m.graph.inputs = {value_info("x", kFloat, {"1", "2", "60", "60"})};
  m.graph.outputs = {value_info("y", kFloat, {"1", "2", "6", "6"})};
  const Graph wide = read_onnx_bytes(m.text());
  ASSERT_EQ(wide.nodes().size(), 2u);
  EXPECT_EQ(wide.nodes()[0]->output()->type.shape, (Shape{1, 2, 6, 60}));
  EXPECT_TRUE(wide.nodes()[1]->as<Resize>().antialias);
  m.graph.initializers = {tensor("s", kInt64, {4}, integers({1, 2, 40, 40}))};
  m.graph.outputs = {value_info("y", kFloat, {"1", "2", "40", "40"})};
  const Graph narrow = read_onnx_bytes(m.text());
  ASSERT_EQ(narrow.nodes().size(), 1u);
  EXPECT_EQ(narrow.nodes()[0]->as<Resize>().mode, ResizeMode::linear);
}

}  // namespace
}  // namespace opfuse::test
