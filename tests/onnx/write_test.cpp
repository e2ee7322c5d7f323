// What is written back: the same graph, the same interface, opaque nodes and unknown fields untouched.
#include "onnx/write.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ir/outline.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "onnx/wire.hpp"
#include "opfuse/error.hpp"
#include "ops/registry.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void expect_same(const Graph& a, const Graph& b) {
  std::string why;
  EXPECT_TRUE(equal(a, b, &why)) << why;
}

Graph written_back(const Graph& g, const WriteOptions& options = {}) {
  Graph back = read_onnx_bytes(write_onnx_bytes(g, options));
  verify(back);
  return back;
}

TEST(Write, GivesTheGraphBack) {
  const Graph g = read_onnx_bytes(conv_relu().text());
  const Graph back = written_back(g);
  expect_same(g, back);
  EXPECT_EQ(back.nodes()[0]->name(), "conv");
  EXPECT_EQ(back.nodes()[0]->output()->name, "c");
  EXPECT_EQ(back.find_value("w")->constant->real(5), 6);
}

TEST(Write, KeepsTheInterfaceByteForByte) {
  ModelBytes m = conv_relu();
  Encoder documented;
  documented.raw(value_info("x", kFloat, {"batch size", "2", "", "4"}));
  documented.bytes(3, "the image");
  m.graph.inputs = {documented.text()};
  m.graph.outputs = {value_info("y", kFloat, {"n_out", "3", "", "4"})};
  const std::string bytes = write_onnx_bytes(read_onnx_bytes(m.text()));
  const onnx::ModelProto back = onnx::parse_model(bytes);
  EXPECT_EQ(back.graph.inputs.at(0).raw, m.graph.inputs[0]);
  EXPECT_EQ(back.graph.outputs.at(0).raw, m.graph.outputs[0]);
}

TEST(Write, KeepsUnknownFieldsAndMetadata) {
  ModelBytes m = conv_relu();
  Encoder extra, entry, odd;
  entry.bytes(1, "author"), entry.bytes(2, "someone");
  odd.bytes(1, "onnx:opset:"), odd.bytes(2, "a key that looks like ours");
  extra.bytes(2, "some exporter");
  extra.message(14, entry), extra.message(14, odd);
  extra.bytes(999, "a field of the future");
  m.extra = extra.text();
  Encoder graph_extra;
  graph_extra.bytes(998, "another one");
  m.graph.extra = graph_extra.text();
  const std::string bytes = write_onnx_bytes(read_onnx_bytes(m.text()));
  for (const char* kept :
       {"some exporter", "author", "someone", "a key that looks like ours", "a field of the future", "another one"})
    EXPECT_THAT(bytes, HasSubstr(kept));
  EXPECT_EQ(write_onnx_bytes(read_onnx_bytes(bytes)), bytes);  // a fixed point
}

TEST(Write, OpaqueNodesComeBackUnchanged) {
  ModelBytes m = conv_relu();
  const std::string branch =
      GraphBytes{.nodes = {node("Mul", {"c", "w"}, {"o"})}, .outputs = {value_info("o", kFloat, {"1"})}}.text();
  m.graph.nodes[0] = node("Secret", {"x", "", "w"}, {"c"}, {attribute("k", 3)}, "secret", "org.example");
  m.graph.nodes[1] = node("If", {"x"}, {"y"}, {graph_attribute("then_branch", branch)}, "if");
  m.domains = {"org.example"};
  m.graph.values = {value_info("c", kFloat, {"1", "3", "4", "4"})};
  const std::string bytes = write_onnx_bytes(read_onnx_bytes(m.text()));
  const onnx::ModelProto back = onnx::parse_model(bytes);
  EXPECT_THAT(bytes, HasSubstr(m.graph.nodes[0]));
  EXPECT_THAT(bytes, HasSubstr(branch));
  EXPECT_THAT(back.graph.nodes.at(1).inputs, ElementsAre("x"));
  EXPECT_EQ(back.opsets.size(), 2u);
  EXPECT_EQ(back.graph.values.at(0).raw, m.graph.values[0]);
}

TEST(Write, NothingIsLostOnTheWayThroughText) {
  ModelBytes m = conv_relu();
  m.graph.nodes[0] = node("Secret", {"x", "", "w"}, {"c"}, {text_attribute("k", std::string("\0\x01\n\"\xff", 5))},
                          "secret", "org.example");
  m.domains = {"org.example"};
  m.graph.inputs = {value_info("x", kFloat, {"batch size", "2", "", "4"})};
  Encoder extra;
  extra.bytes(999, std::string("\0\xff", 2));
  m.extra = extra.text();
  const Graph g = read_onnx_bytes(m.text());
  const Graph parsed = parse_graph(print(g, {.max_constant_elements = 100}), ops());
  EXPECT_EQ(write_onnx_bytes(parsed), write_onnx_bytes(g));
}

TEST(Write, FunctionsWithSubgraphsStayCalls) {
  ModelBytes m = conv_relu();
  const std::string branch =
      GraphBytes{.nodes = {node("Relu", {"a"}, {"o"})}, .outputs = {value_info("o", kFloat, {"1"})}}.text();
  m.graph.nodes[1] = node("F", {"c"}, {"y"}, {}, "call", "mine");
  m.domains = {"mine"};
  m.functions = {
      function("mine", "F", {"a"}, {"b"}, {}, {node("If", {"a"}, {"b"}, {graph_attribute("then_branch", branch)})})};
  const std::string bytes = write_onnx_bytes(read_onnx_bytes(m.text()));
  EXPECT_THAT(bytes, HasSubstr(m.functions[0]));
}

TEST(Write, BodiesOfFusedNodesAreWrittenInTheirPlace) {
  Graph g = read_onnx_bytes(conv_relu().text());
  const Graph plain = g.clone();
  outline(g, {g.nodes()[0], g.nodes()[1]}, {.op = fused_op(), .label = "FusedConvReLU__conv", .pattern = "ConvReLU"});
  ASSERT_EQ(g.nodes().size(), 1u);
  const Graph back = written_back(g);
  expect_same(plain, back);
  EXPECT_EQ(back.nodes()[0]->name(), "conv");
}

TEST(Write, AConstantThatIsAnOutputAndAnInputThatIsAnOutput) {
  ModelBytes m = conv_relu();
  m.graph.outputs = {value_info("w", kFloat, {"3", "2", "1", "1"}), value_info("x", kFloat, {"1", "2", "4", "4"})};
  const Graph back = written_back(read_onnx_bytes(m.text()));
  EXPECT_EQ(back.outputs()[0]->name, "w");
  EXPECT_EQ(back.outputs()[1], back.inputs()[0]);
}

TEST(Write, SaysOperatorsInTheOpsetAskedFor) {
  const Graph g = read_onnx_bytes(ModelBytes{
      .graph = {.nodes = {node("Unsqueeze", {"x", "a"}, {"u"}, {}, "u"),
                          node("ReduceMean", {"u"}, {"r"}, {attribute("axes", std::vector<int64_t>{1})}, "r"),
                          node("Clip", {"r", "lo"}, {"y"}, {}, "c")},
                .initializers = {tensor("a", kInt64, {1}, integers({0})), tensor("lo", kFloat, {}, floats({0}))},
                .inputs = {value_info("x", kFloat, {"2", "3"})},
                .outputs = {value_info("y", kFloat, {"1", "1", "3"})}}}
                                      .text());
  for (int64_t opset : {7, 10, 11, 12, 13, 17, 18, 21, 28}) {
    const std::string bytes = write_onnx_bytes(g, {.opset = opset});
    const onnx::ModelProto model = onnx::parse_model(bytes);
    EXPECT_EQ(model.opsets.at(0).version, opset);
    EXPECT_EQ(model.graph.nodes.at(0).attributes.size(), opset < 13 ? 1u : 0u) << opset;
    EXPECT_EQ(model.graph.nodes.at(1).attributes.size(), opset < 18 ? 1u : 0u) << opset;
    EXPECT_EQ(model.graph.nodes.at(2).attributes.size(), opset < 11 ? 1u : 0u) << opset;
    EXPECT_EQ(read_onnx_bytes(bytes).outputs()[0]->type.text(), "f32[1,1,3]") << opset;
  }
}

TEST(Write, ASoftmaxOfFlattenedAxesIsOneOfAMatrixSinceOpset13) {
  for (const char* op : {"softmax", "log_softmax", "hardmax"})
    for (const auto& [axis, opened] :
         std::vector<std::pair<int64_t, bool>>{{0, false}, {1, false}, {1, true}, {-2, false}}) {
      Graph g;
      Value* x = g.add_input("x", {DType::f32, opened ? Shape{2, Dim::symbol("n"), 4} : Shape{2, 3, 4}});
      Node* node =
          g.add_node(op_named(op), AttrMap{{"axis", axis}, {"flatten", true}}, {x}, 1, {{"s", "Softmax", "", 11}});
      node->output()->name = "y";
      g.set_outputs({node->output()});
      const Graph back = written_back(g, {.opset = 13});
      EXPECT_EQ(back.outputs()[0]->name, "y");
      EXPECT_EQ(back.outputs()[0]->type.text(), g.outputs()[0]->type.text());
      const SymbolValues sizes = opened ? SymbolValues{{"n", 3}} : SymbolValues{};
      const std::vector<Tensor> inputs = random_inputs(g, {.seed = 1, .symbols = sizes});
      const Tensor want = interpret(g, inputs)[0], got = interpret(back, inputs)[0];
      for (int64_t i = 0; i < want.elements(); ++i) EXPECT_NEAR(want.real(i), got.real(i), 1e-7) << op << axis;
      if (std::string_view(op) != "hardmax") expect_same(g, written_back(g, {.opset = 11}));  // which is read as others
    }
}

/// Raised from the model's own, 10, to what the form of a node or a type came with.
TEST(Write, StatesTheOpsetOfQdqFormsAndTypes) {
  const auto opset = [](const std::string& body) {
    Graph g = parse_graph("graph (%x: f32[2,32]) {\n" + body + "\nreturn %y }", ops());
    g.metadata.emplace_back("onnx:opset:", "10");
    return onnx::parse_model(write_onnx_bytes(g)).opsets.at(0).version;
  };
  const auto dequantized = [&](const std::string& type, const std::string& scale, const std::string& attrs = "") {
    return opset("%c = const rand<1> : " + type + "[2,32] %s = const splat<0.5> : f32[" + scale +
                 "] %w = dequantize_linear(%c, %s) " + attrs + " %y = add(%x, %w)");
  };
  EXPECT_EQ(dequantized("i8", ""), 10);
  EXPECT_EQ(dequantized("i8", "2", "{axis = 0}"), 13);
  EXPECT_EQ(dequantized("i8", "2,2", "{axis = 1, block_size = 16}"), 21);
  EXPECT_EQ(dequantized("u16", ""), 21);
  EXPECT_EQ(dequantized("u4", ""), 21);
}

TEST(Write, RaisesTheOpsetWhenAnOperatorIsNewerAndRefusesWhenToldNotTo) {
  Graph g;
  Value* x = g.add_input("x", {DType::f32, Shape{2, 3}});
  Node* gelu = g.add_node(op_named("gelu"), AttrMap{}, {x});
  gelu->output()->name = "y";
  g.set_outputs({gelu->output()});
  const std::string bytes = write_onnx_bytes(g);
  EXPECT_EQ(onnx::parse_model(bytes).opsets.at(0).version, 20);
  expect_same(g, written_back(g));
  try {
    write_onnx_bytes(g, {.opset = 17});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "unsupported_op");
    EXPECT_THAT(error.diagnostic().hint, HasSubstr("20"));
  }
}

TEST(Write, LargeWeightsGoToADataFile) {
  TemporaryFolder folder;
  Graph g = read_onnx_bytes(conv_relu().text());
  g.add_input("z", {DType::f32, Shape{2048}});
  Value* big = g.add_constant(Tensor::of(DType::f32, {2048}, std::vector<float>(2048, 3.0f)), "big");
  Node* add = g.add_node(op_named("add"), AttrMap{}, {g.inputs()[1], big});
  add->output()->name = "sum";
  g.set_outputs({g.outputs()[0], add->output()});
  write_onnx(g, folder.path("m.onnx"), {.max_file_bytes = 4096});
  EXPECT_LT(folder.read("m.onnx").size(), 4096u);
  EXPECT_EQ(folder.read("m.onnx.data").size(), 8192u);
  expect_same(g, read_onnx(folder.path("m.onnx")));
  EXPECT_EQ(folder.file_count(), 2u);
}

TEST(Write, OverwritesTheFileItReadsFrom) {
  TemporaryFolder folder;
  const std::string path = folder.write("m.onnx", conv_relu().text());
  const Graph g = read_onnx(path);
  write_onnx(g, path);
  expect_same(g, read_onnx(path));
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(Write, LeavesNothingBehindWhenItFails) {
  TemporaryFolder folder;
  const Graph g = read_onnx_bytes(conv_relu().text());
  EXPECT_THROW(write_onnx(g, folder.path("no/such/folder/m.onnx")), Error);
  EXPECT_THROW(write_onnx(g, folder.path("m.onnx"), {.opset = 3}), Error);
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(Write, RealModelsComeBackEqual) {
  const char* models = std::getenv("OPFUSE_TEST_MODELS");
  if (!models) GTEST_SKIP() << "OPFUSE_TEST_MODELS is not set";
  for (const char* name : {"mobilenet_v2", "resnet50_bn"}) {
    const Graph g = read_onnx(std::string(models) + "/" + name + ".onnx");
    verify(g);
    TemporaryFolder folder;
    write_onnx(g, folder.path("m.onnx"));
    expect_same(g, read_onnx(folder.path("m.onnx")));
  }
}

}  // namespace
}  // namespace opfuse::test
