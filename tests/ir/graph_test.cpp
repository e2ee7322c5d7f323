// Edits of a graph keep names, order and uses right.
#include "ir/graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "ir/located.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

Graph chain() {
  return parse_graph("graph (%x: f32[2]) { %a = relu(%x) @\"A\" %b = exp(%a) @\"B\" %y = neg(%b) @\"C\" return %y }",
                     ops());
}

std::string problem_of(const Graph& g) {
  try {
    verify(g);
  } catch (const Error& e) {
    return e.diagnostic().name + ": " + e.diagnostic().message;
  }
  return "";
}

TEST(Graph, ReplacingAnOutputMovesItsName) {
  Graph g = chain();
  Value *y = g.find_value("y"), *b = g.find_value("b");
  g.replace_uses(y, b);
  EXPECT_EQ(g.outputs()[0], b);
  EXPECT_EQ(b->name, "y");
  EXPECT_EQ(g.remove_dead_nodes(), 1u);
  EXPECT_EQ(problem_of(g), "");
}

TEST(Graph, RefusesToRenameItsInterface) {
  Graph g = chain();
  EXPECT_FALSE(g.can_replace(g.outputs()[0], g.inputs()[0]));
  EXPECT_THROW(g.replace_uses(g.outputs()[0], g.inputs()[0]), Error);
  EXPECT_TRUE(g.can_replace(g.find_value("a"), g.inputs()[0]));
}

TEST(Graph, RemovesChainsOfDeadNodesAndTheirConstants) {
  Graph g = parse_graph(
      "graph (%x: f32[2]) { %k = const splat<1> : f32[2] %a = add(%x, %k) %b = exp(%a) %y = relu(%x) return %y }",
      ops());
  EXPECT_EQ(g.remove_dead_nodes(), 2u);
  EXPECT_TRUE(g.constants().empty());
  EXPECT_EQ(g.nodes().size(), 1u);
}

TEST(Graph, SortsStablyAndNamesACycle) {
  Graph g = chain();
  Node *a = g.find_node("A"), *c = g.find_node("C");
  g.set_input(a, 0, c->output());
  try {
    g.sort_topologically();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().name, "cyclic_graph");
    EXPECT_EQ(e.diagnostic().node, "A");
  }
  Graph h = chain();
  const auto order = h.nodes();
  h.sort_topologically();
  EXPECT_EQ(h.nodes(), order);
}

TEST(Graph, ErasesOnlyWhatNobodyReads) {
  Graph g = chain();
  EXPECT_THROW(g.erase(g.find_node("A")), Error);
}

TEST(Graph, ErasesNodesInAnyOrder) {
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"b", "d"}, {"d", "b"}, {"d", "c", "b"}, {"b", "b"}}) {
    Graph g = parse_graph(
        "graph (%x: f32[2]) { %a = relu(%x) @\"a\" %b = tanh(%x) @\"b\" %c = exp(%x) @\"c\" %d = neg(%x) @\"d\" "
        "return %a }",
        ops());
    std::vector<Node*> nodes;
    for (const std::string& name : names) nodes.push_back(g.find_node(name));
    const size_t left = 4 - std::set<std::string>(names.begin(), names.end()).size();
    g.erase(nodes);
    EXPECT_EQ(g.nodes().size(), left);
    EXPECT_EQ(g.nodes().front()->name(), "a");
    EXPECT_EQ(problem_of(g), "");
  }
}

TEST(Graph, InsertsBeforeANode) {
  Graph g = chain();
  Node* c = g.find_node("C");
  Node* made = g.add_node(op_named("tanh"), AttrMap{}, {c->input(0)}, 1, {}, c);
  g.set_input(c, 0, made->output());
  EXPECT_EQ(g.position(made) + 1, g.position(c));
  EXPECT_EQ(problem_of(g), "");
}

TEST(Graph, BindsDimensionsEverywhere) {
  Graph g = parse_graph("graph (%x: f32[n,3]) { %y = fused \"P\" (%x) { %r = relu(%x) yield %r } return %y }", ops());
  EXPECT_EQ(g.symbols(), std::set<std::string>{"n"});
  g.bind_dimensions({{"n", 5}});
  EXPECT_EQ(g.outputs()[0]->type.text(), "f32[5,3]");
  EXPECT_EQ(problem_of(g), "");
  EXPECT_THROW(g.bind_dimensions({{"batch", 5}}), Error);
}

TEST(Graph, ErrorsOfNodesNameOperands) {
  Graph g = parse_graph("graph (%x: f32[2], %w: f32[3]) { return %x }", ops());
  try {
    g.add_node(op_named("add"), AttrMap{}, g.inputs(), 1, {{"sum", "Add", "", 13}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().node, "sum");
    ASSERT_EQ(e.diagnostic().operands.size(), 2u);
    EXPECT_THAT(e.diagnostic().operands[1], ::testing::HasSubstr("f32[3]   graph input \"w\""));
  }
  EXPECT_THROW(g.add_node(op_named("relu"), AttrMap{}, {}), Error);
  EXPECT_THROW(g.add_node(op_named("relu"), AttrMap{}, g.inputs()), Error);
  EXPECT_THROW(g.add_node(op_named("relu"), AttrMap{}, {nullptr}), Error);
  EXPECT_THROW(g.add_node(op_named("relu"), AttrMap{{"nope", int64_t{1}}}, {g.inputs()[0]}), Error);
  EXPECT_EQ(g.nodes().size(), 0u) << "a refused node leaves nothing behind";
}

TEST(Graph, ResultsOfOpaqueNodesAreUnknownUnlessDeclared) {
  Graph g =
      parse_graph("graph (%x: f32[2]) { %a = opaque(%x) %b = relu(%a) %c = relu(%b) : f32[7] return %b, %c }", ops());
  EXPECT_EQ(g.outputs()[0]->type.text(), "unknown[*]");
  EXPECT_EQ(g.outputs()[1]->type.text(), "f32[7]");
  g.infer_types();
  EXPECT_EQ(g.outputs()[1]->type.text(), "f32[7]");
}

TEST(Verify, FindsBrokenBookkeeping) {
  Graph g = chain();
  g.find_value("a")->uses.clear();
  EXPECT_THAT(problem_of(g), ::testing::HasSubstr("is not recorded as a use"));
  Graph h = chain();
  h.find_value("a")->name = "b";
  EXPECT_THAT(problem_of(h), ::testing::HasSubstr("two values are called \"b\""));
  Graph i = chain();
  i.find_value("a")->type = parse_type("f32[9]");
  EXPECT_THAT(problem_of(i), ::testing::HasSubstr("is declared f32[9] but relu gives f32[2]"));
  Graph j = chain();
  Node* a = j.find_node("A");
  a->inputs[0]->uses.clear();
  a->inputs[0] = j.find_value("y");
  j.find_value("y")->uses.push_back({a, 0});
  EXPECT_THAT(problem_of(j), ::testing::HasSubstr("is read by A before it is written"));
  Graph k = chain();
  k.find_value("b")->constant = Tensor(DType::f32, {2});
  EXPECT_THAT(problem_of(k), ::testing::HasSubstr("not exactly one of"));
}

TEST(Verify, ChecksBodiesAgainstTheirNode) {
  Graph g = parse_graph("graph (%x: f32[2]) { %y = fused \"P\" (%x) { %r = relu(%x) yield %r } return %y }", ops());
  EXPECT_EQ(problem_of(g), "");
  g.nodes()[0]->body->inputs()[0]->type = parse_type("f32[3]");
  EXPECT_THAT(problem_of(g), ::testing::HasSubstr("its body expects f32[3]"));
  g.nodes()[0]->body.reset();
  EXPECT_THAT(problem_of(g), ::testing::HasSubstr("lacks a body"));
}

bool same(const char* a, const char* b) {
  const Graph ga = parse_graph(a, ops()), gb = parse_graph(b, ops());
  const bool result = equal(ga, gb);
  EXPECT_EQ(result, structural_hash(ga) == structural_hash(gb)) << "hash and equality agree";
  EXPECT_EQ(result, equal(gb, ga));
  return result;
}

TEST(Equal, IgnoresNamesAndTheOrderOfIndependentNodes) {
  EXPECT_TRUE(same("graph (%x: f32[2]) { %a = relu(%x) %b = exp(%x) %y = add(%a, %b) @\"s\" return %y }",
                   "graph @n (%q: f32[2]) { %1 = exp(%q) %2 = relu(%q) %z = add(%2, %1) return %z }"));
}

TEST(Equal, SeesOperandsAttributesConstantsAndSharing) {
  EXPECT_FALSE(same("graph (%x: f32[2], %w: f32[2]) { %y = sub(%x, %w) return %y }",
                    "graph (%x: f32[2], %w: f32[2]) { %y = sub(%w, %x) return %y }"));
  EXPECT_FALSE(same("graph (%x: f32[2,2]) { %y = softmax(%x) {axis = 0} return %y }",
                    "graph (%x: f32[2,2]) { %y = softmax(%x) {axis = 1} return %y }"));
  EXPECT_FALSE(same("graph (%x: f32[2]) { %k = const splat<1> : f32[2] %y = add(%x, %k) return %y }",
                    "graph (%x: f32[2]) { %k = const splat<2> : f32[2] %y = add(%x, %k) return %y }"));
  EXPECT_FALSE(same("graph (%x: f32[2]) { %a = relu(%x) %b = relu(%x) %y = add(%a, %b) return %y }",
                    "graph (%x: f32[2]) { %a = relu(%x) %y = add(%a, %a) return %y }"));
  EXPECT_FALSE(same("graph (%x: f32[2]) { %y = fused \"A\" (%x) { %r = relu(%x) yield %r } return %y }",
                    "graph (%x: f32[2]) { %y = fused \"A\" (%x) { %r = exp(%x) yield %r } return %y }"));
  EXPECT_FALSE(same("graph (%x: f32[2]) { %y = fused \"A\" (%x) { %r = relu(%x) yield %r } return %y }",
                    "graph (%x: f32[2]) { %y = fused \"B\" (%x) { %r = relu(%x) yield %r } return %y }"));
  EXPECT_FALSE(same("graph (%x: f32[2]) { %d = relu(%x) return %x }", "graph (%x: f32[2]) { %d = exp(%x) return %x }"));
}

TEST(Equal, SaysWhere) {
  std::string why;
  EXPECT_FALSE(equal(
      chain(),
      parse_graph("graph (%x: f32[2]) { %a = relu(%x) @\"A\" %b = log(%a) @\"B\" %y = neg(%b) return %y }", ops()),
      &why));
  EXPECT_EQ(why, "node B is exp, node B is log");
}

TEST(SourceOperator, IsTheModelsWhereAllItsNodesHaveIt) {
  Graph g = parse_graph("graph (%x: f32[2]) { %y = non_zero(%x) return %y }", ops());
  Node& node = *g.nodes()[0];
  node.sources = {{"a", "NonZero", ""}, {"b", "NonZero", ""}};  // equal nodes became one
  EXPECT_EQ(source_operator(node), "NonZero");
  node.sources[1].op_type = "Identity";
  EXPECT_EQ(source_operator(node), "non_zero");
  node.sources.clear();
  EXPECT_EQ(source_operator(node), "non_zero");
}

}  // namespace
}  // namespace opfuse
