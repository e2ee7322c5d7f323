// Fused groups as model-local functions: one per structure, and read back to the graph they were made from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/outline.hpp"
#include "onnx/call_record.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "ops/registry.hpp"

namespace opfuse::test {
namespace {

using testing::ElementsAre;

// x -> (conv -> leaky -> mul by a scalar) three times; the last convolution has a stride
Graph three_blocks() {
  ModelBytes m = conv_relu();
  m.graph.nodes.clear();
  std::string from = "x";
  for (const std::string n : {"1", "2", "3"}) {
    const Strings strides = n == "3" ? Strings{attribute("strides", std::vector<int64_t>{2, 2})} : Strings{};
    std::string conv = node("Conv", {from, "w" + n}, {"c" + n}, strides, "conv" + n);
    if (n == "2") {  // metadata of another exporter
      Encoder entry, extra;
      entry.bytes(1, "scope"), entry.bytes(2, "layer two");
      extra.message(9, entry);
      conv += extra.text();
    }
    m.graph.nodes.push_back(conv);
    m.graph.nodes.push_back(node("Relu", {"c" + n}, {"r" + n}, {}, "relu" + n));
    m.graph.nodes.push_back(node("Mul", {"r" + n, "half"}, {n == "3" ? "y" : "m" + n}, {}, "mul" + n));
    m.graph.initializers.push_back(tensor("w" + n, kFloat, {2, 2, 1, 1}, floats({1, 2, 3, 4})));
    from = "m" + n;
  }
  m.graph.initializers.erase(m.graph.initializers.begin());
  m.graph.initializers.push_back(tensor("half", kFloat, {}, floats({0.5})));
  m.graph.outputs = {value_info("y", kFloat, {"1", "2", "2", "2"})};
  return read_onnx_bytes(m.text());
}

Graph fused_blocks() {
  Graph g = three_blocks();
  for (int n = 1; n <= 3; ++n) {
    std::vector<Node*> nodes;
    for (const char* op : {"conv", "relu", "mul"}) nodes.push_back(g.find_node(op + std::to_string(n)));
    outline(g, nodes, {fused_op(), "FusedBlock__conv" + std::to_string(n), "Block"});
  }
  return g;
}

std::string exported() { return write_onnx_bytes(fused_blocks(), {.functions = true}); }

TEST(FunctionExport, GroupsOfOneStructureShareAFunction) {
  const std::string bytes = exported();
  const onnx::ModelProto model = onnx::parse_model(bytes);
  ASSERT_EQ(model.functions.size(), 1u);
  EXPECT_EQ(model.functions[0].name, "FusedBlock");
  EXPECT_EQ(model.functions[0].domain, "dev.opfuse");
  EXPECT_THAT(model.functions[0].inputs, ElementsAre("x", "w"));
  EXPECT_THAT(model.functions[0].outputs, ElementsAre("y"));
  ASSERT_EQ(model.graph.nodes.size(), 3u);
  std::vector<std::string> calls, names;
  for (const onnx::NodeProto& n : model.graph.nodes) calls.emplace_back(n.op_type), names.emplace_back(n.name);
  EXPECT_THAT(calls, ElementsAre("FusedBlock", "FusedBlock", "FusedBlock"));
  EXPECT_THAT(names, ElementsAre("FusedBlock__conv1", "FusedBlock__conv2", "FusedBlock__conv3"));
  EXPECT_EQ(model.graph.initializers.size(), 3u);  // the scalar lives in the functions
  EXPECT_GE(model.ir_version, 10);
  ASSERT_EQ(model.opsets.size(), 2u);
}

TEST(FunctionExport, AttributesAreTheCallsAndTheBodyRefersToThem) {
  const std::string bytes = exported();
  const onnx::ModelProto model = onnx::parse_model(bytes);
  const onnx::FunctionProto& block = model.functions.at(0);
  EXPECT_THAT(block.attribute_names, ElementsAre("dilations", "group", "kernel_shape", "pads", "strides"));
  std::map<std::string, std::string> references;
  for (const onnx::Attribute& a : block.nodes.at(0).attributes) references.emplace(a.name, a.reference);
  EXPECT_EQ(references.at("strides"), "strides");
  EXPECT_TRUE(model.graph.nodes.at(0).attributes.empty()) << "what a call leaves out is the operator's default";
  ASSERT_EQ(model.graph.nodes.at(2).attributes.size(), 1u);
  EXPECT_EQ(model.graph.nodes.at(2).attributes[0].name, "strides");
  EXPECT_THAT(model.graph.nodes.at(2).attributes[0].ints, ElementsAre(2, 2));
}

TEST(FunctionExport, EqualAttributesOfTwoNodesHaveTwoNames) {
  Graph g;
  Value* x = g.add_input("x", {DType::f32, Shape{2, 3}});
  auto body = std::make_unique<Graph>();
  Value* in = body->add_input("x", x->type);
  Value* rows = body->add_node(op_named("softmax"), AttrMap{{"axis", int64_t{0}}}, {in})->output();
  Value* columns = body->add_node(op_named("softmax"), AttrMap{{"axis", int64_t{1}}}, {rows})->output();
  body->set_outputs({columns});
  Node* fused = g.add_node(fused_op(), std::shared_ptr<const void>(), {x}, 1, {}, nullptr, {x->type});
  fused->body = std::move(body);
  fused->label = "Twice__1";
  fused->outputs[0]->name = "y";
  g.set_outputs(fused->outputs);
  const std::string bytes = write_onnx_bytes(g, {.functions = true});
  EXPECT_THAT(onnx::parse_model(bytes).functions.at(0).attribute_names, ElementsAre("axis", "axis_2"));
  const Graph back = read_onnx_bytes(bytes);
  ASSERT_EQ(back.nodes().size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const AttrMap attrs = back.nodes()[i]->attr_map();
    const AttrValue* axis = find(attrs, "axis");
    ASSERT_TRUE(axis);
    EXPECT_EQ(std::get<int64_t>(*axis), static_cast<int64_t>(i));
  }
}

TEST(FunctionExport, TheCallKeepsTheOriginalNames) {
  const std::string bytes = exported();
  const onnx::ModelProto model = onnx::parse_model(bytes);
  const auto record = onnx::decode_record(model.graph.nodes.at(0).unknown);
  ASSERT_TRUE(record);
  EXPECT_THAT(record->nodes, ElementsAre("conv1", "relu1", "", "mul1"));
  EXPECT_THAT(record->values,
              ElementsAre(ElementsAre("c1"), ElementsAre("r1"), ElementsAre("half"), ElementsAre("m1")));
}

TEST(FunctionExport, SaysWhatItFusedAndHasTheTypeOfEveryEdge) {
  const std::string bytes = exported();
  const onnx::ModelProto model = onnx::parse_model(bytes);
  EXPECT_NE(model.graph.nodes.at(0).unknown.find("fuses conv1, relu1, mul1; "), std::string_view::npos);
  std::vector<std::string> edges;
  for (const onnx::ValueInfo& info : model.graph.values) edges.emplace_back(info.name);
  EXPECT_THAT(edges, ElementsAre("m1", "m2"));
  EXPECT_EQ(model.graph.values.at(0).type.dims.size(), 4u);
  ASSERT_EQ(model.metadata.size(), 2u);
  EXPECT_EQ(model.metadata[0].key, "opfuse.groups");
  EXPECT_EQ(model.metadata[0].value, "3");
  const std::string again = write_onnx_bytes(read_onnx_bytes(exported()), {.functions = true});
  EXPECT_TRUE(onnx::parse_model(again).metadata.empty()) << "no groups, no claim of any";
}

TEST(FunctionExport, ReadsBackToTheSameGraphWithTheSameNames) {
  const Graph original = three_blocks();
  const Graph back = read_onnx_bytes(exported());
  verify(back);
  std::string why;
  EXPECT_TRUE(equal(original, back, &why)) << why;
  ASSERT_EQ(original.nodes().size(), back.nodes().size());
  for (size_t i = 0; i < back.nodes().size(); ++i) {
    EXPECT_EQ(back.nodes()[i]->name(), original.nodes()[i]->name());
    EXPECT_EQ(back.nodes()[i]->output()->name, original.nodes()[i]->output()->name);
  }
  EXPECT_EQ(back.constants().size(), original.constants().size());  // one 0.5, not three
  EXPECT_EQ(write_onnx_bytes(fused_blocks()), write_onnx_bytes(original)) << "flat: the same file";
}

TEST(FunctionExport, AReadExportWritesNoTraceOfItsFunctions) {
  const std::string bytes = write_onnx_bytes(read_onnx_bytes(exported()));
  const onnx::ModelProto flat = onnx::parse_model(bytes);
  EXPECT_TRUE(flat.functions.empty());
  EXPECT_EQ(flat.opsets.size(), 1u);
  EXPECT_EQ(flat.graph.nodes.size(), 9u);
  EXPECT_NE(flat.graph.nodes[3].unknown.find("layer two"), std::string::npos) << "metadata of the exporter";
}

TEST(FunctionExport, ADamagedRecordCostsTheNamesOnly) {
  std::string bytes = exported();
  for (size_t at = bytes.find("opfuse.origin"); at != std::string::npos; at = bytes.find("opfuse.origin", at))
    bytes.replace(at, 13, "xpfuse.origin");
  const Graph back = read_onnx_bytes(bytes);
  EXPECT_EQ(back.nodes().at(0)->name(), "FusedBlock__conv1/Conv");
  std::vector<std::string> ops;
  for (const Node* n : back.nodes()) ops.push_back(n->op->name);
  EXPECT_THAT(ops, ElementsAre("conv", "relu", "mul", "conv", "relu", "mul", "conv", "relu", "mul"));
}

TEST(FunctionExport, RestoredNamesNeverCollide) {
  std::string bytes = exported();
  const size_t at = bytes.find("[[\"c1\"]");  // the first call claims the name of another tensor
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 7, "[[\"m1\"]");
  const Graph back = read_onnx_bytes(bytes);
  verify(back);
  EXPECT_EQ(back.nodes().at(0)->output()->name, "FusedBlock__conv1/conv");
}

TEST(FunctionExport, AGroupThatYieldsItsOperandOrAValueTwiceIsCopied) {
  Graph g;
  Value* x = g.add_input("x", {DType::f32, Shape{2}});
  auto body = std::make_unique<Graph>();
  Value* in = body->add_input("x", x->type);
  Value* r = body->add_node(op_named("relu"), AttrMap{}, {in})->output();
  body->set_outputs({r, r, in});
  Node* fused = g.add_node(fused_op(), std::shared_ptr<const void>(), {x}, 3, {}, nullptr, {x->type, x->type, x->type});
  fused->body = std::move(body);
  fused->label = "Odd__1";
  for (size_t i = 0; i < 3; ++i) fused->outputs[i]->name = "y" + std::to_string(i);
  g.set_outputs(fused->outputs);
  const Graph back = read_onnx_bytes(write_onnx_bytes(g, {.functions = true}));
  verify(back);
  ASSERT_EQ(back.outputs().size(), 3u);
  EXPECT_EQ(back.outputs()[2]->name, "y2");
}

TEST(CallRecord, ComesBackWhateverTheNamesHold) {
  onnx::CallRecord record;
  record.add("a \"b\"\n\\", {"", "x,y]"}, std::string("\0\xff", 2));
  record.add("", {}, "");
  EXPECT_EQ(onnx::decode_record(onnx::encode_record(record, "P")), record);
  EXPECT_FALSE(onnx::decode_record(""));
}

}  // namespace
}  // namespace opfuse::test
