// The rule engine over what no pattern claims, and the ledger's verdicts.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "fusion/explain/explain.hpp"
#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "opfuse/error.hpp"

namespace opfuse {
namespace {

Graph graph_of(const std::string& body, const std::string& results = "%y") {
  return parse_graph("graph (%x: f32[1,4,8,8], %z: f32[1,4,8,8]) {\n %w = const rand<1> : f32[4,4,3,3]\n" + body +
                         "\n return " + results + "\n}",
                     ops());
}

std::vector<std::string> groups(const FusionPlan& plan) {
  std::vector<std::string> list;
  for (const Candidate* c : plan.applied()) list.push_back(c->module);
  return list;
}

std::string verdict(const FusionPlan& plan, const std::string& producer, const std::string& consumer) {
  for (const EdgeVerdict& e : plan.edges)
    if (e.producer == producer && e.consumer == consumer) return e.group.empty() ? e.decline.code : "fused";
  return "no edge";
}

void expect_same_values(const Graph& g, const FusionPlan& plan) {
  const Graph fused = apply(g, plan);
  verify(fused);
  const std::vector<Tensor> inputs = random_inputs(g);
  const auto want = interpret(g, inputs), got = interpret(fused, inputs);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]).relative(), 1e-6);
}

const std::string kConv = "%c = conv(%x, %w) {pads=[1,1,1,1]} @\"c\"\n";

TEST(Rules, AChainOfElementwiseNodesIsOneMap) {
  const Graph g = graph_of("%a = exp(%x) @\"a\"\n %b = neg(%a) @\"b\"\n %y = mul(%b, %z) @\"m\"");
  const FusionPlan plan = make_plan(g);
  ASSERT_EQ(groups(plan), (std::vector<std::string>{"fused_exp_neg_mul"}));
  EXPECT_EQ(plan.applied()[0]->id, "map@m");
  EXPECT_EQ(plan.applied()[0]->label, "fused_exp_neg_mul__a");
  EXPECT_EQ(plan.applied()[0]->bytes_saved, 2 * 2 * 1024);
  EXPECT_FALSE(plan.applied()[0]->named);
  expect_same_values(g, plan);
}

TEST(Rules, ADiamondIsOneMapAndTwoRootsMeet) {
  const Graph g =
      graph_of("%a = exp(%x)\n %b = neg(%a)\n %c = abs(%a)\n %d = add(%b, %c)\n %e = tanh(%z)\n %y = mul(%d, %e)");
  const FusionPlan plan = make_plan(g);
  ASSERT_EQ(plan.applied().size(), 1u);
  EXPECT_EQ(plan.applied()[0]->nodes.size(), 6u);
  expect_same_values(g, plan);
}

TEST(Rules, AConvolutionTakesADiamondAsItsEpilogueAndKeepsItsName) {
  const Graph g =
      graph_of(kConv + "%a = tanh(%c)\n %b = abs(%c)\n %d = exp(%c)\n %e = add(%a, %b)\n %y = mul(%e, %d) @\"m\"");
  const FusionPlan plan = make_plan(g);
  ASSERT_EQ(groups(plan), (std::vector<std::string>{"FusedConvBN"}));
  EXPECT_EQ(plan.applied()[0]->epilogue.size(), 5u);
  EXPECT_EQ(plan.applied()[0]->id, "ConvBN@c");
  expect_same_values(g, plan);
}

TEST(Rules, AResidualAddWithoutActivationJoinsTheDeeperConvolution) {
  const Graph g = graph_of(kConv + "%r = relu(%c)\n %d = conv(%r, %w) {pads=[1,1,1,1]} @\"d\"\n" +
                           "%e = conv(%x, %w) {pads=[1,1,1,1]} @\"e\"\n %y = add(%e, %d) @\"sum\"");
  const FusionPlan plan = make_plan(g);
  EXPECT_EQ(plan.find("ConvBN@d")->epilogue, (std::vector<std::string>{"sum"}));
  EXPECT_TRUE(plan.find("ConvBN@e")->epilogue.empty());
  EXPECT_EQ(verdict(plan, "d", "sum"), "fused");
  EXPECT_NE(verdict(plan, "e", "sum"), "fused");
  expect_same_values(g, plan);
}

TEST(Rules, TwoConvolutionsNeverShareAGroup) {
  const Graph g = graph_of(kConv + "%y = conv(%c, %w) {pads=[1,1,1,1]} @\"d\"");
  const FusionPlan plan = make_plan(g);
  EXPECT_EQ(groups(plan), (std::vector<std::string>{"FusedConvBN", "FusedConvBN"}));
  EXPECT_EQ(verdict(plan, "c", "d"), "two_anchors");
}

TEST(Rules, NoPrologueRunsIntoAConvolutionOrPool) {
  const Graph g = graph_of("%a = tanh(%x) @\"a\"\n %c = conv(%a, %w) {pads=[1,1,1,1]} @\"c\"\n %y = relu(%c)");
  EXPECT_EQ(verdict(make_plan(g), "a", "c"), "prologue_recompute");
  const Graph pool = graph_of("%a = tanh(%x) @\"a\"\n %y = max_pool(%a) {kernel_shape=[2,2]} @\"p\"");
  EXPECT_EQ(verdict(make_plan(pool), "a", "p"), "prologue_recompute");
}

TEST(Rules, ReductionsTakeAnElementwisePrologueAndTail) {
  const Graph g =
      graph_of("%a = exp(%x) @\"a\"\n %s = reduce_sum(%a) {axes=[3]} @\"s\"\n %l = sqrt(%s) @\"l\"\n %y = neg(%l)");
  const FusionPlan plan = make_plan(g);
  ASSERT_EQ(groups(plan), (std::vector<std::string>{"fused_exp_reduce_sum_sqrt_neg"}));
  EXPECT_EQ(plan.applied()[0]->pattern, "row");
  expect_same_values(g, plan);
}

TEST(Rules, ATransposeOfTheChannelsIsAnotherPlaceToStore) {
  const Graph g = graph_of(kConv + "%a = tanh(%c) @\"a\"\n %t = transpose(%a) {perm=[0,2,3,1]} @\"t\"\n" +
                           "%e = exp(%t) @\"e\"\n %y = transpose(%e) {perm=[0,3,1,2]} @\"u\"");
  const FusionPlan plan = make_plan(g);
  ASSERT_EQ(groups(plan), (std::vector<std::string>{"FusedConvBN"}));
  EXPECT_EQ(plan.applied()[0]->epilogue, (std::vector<std::string>{"a", "t", "e", "u"}));
  expect_same_values(g, plan);
}

TEST(Rules, TheTailOfAnMlpBlockJoinsItsProductAndTheNormStoresChannelsFirst) {
  const Graph g = parse_graph(R"(graph (%x: f32[2,6,5,3]) {
    %w = const rand<1> : f32[6,6]
    %b = const rand<2> : f32[6]
    %s = const rand<3> : f32[6,1,1]
    %t = transpose(%x) {perm=[0,2,3,1]} @"t"
    %n = layer_norm(%t, %b, %b) {axis=-1} @"n"
    %m = matmul(%n, %w) @"m"
    %a = add(%m, %b) @"a"
    %u = transpose(%a) {perm=[0,3,1,2]} @"u"
    %l = mul(%u, %s) @"l"
    %r = add(%l, %x) @"r"
    %v = transpose(%r) {perm=[0,2,3,1]} @"v"
    %k = layer_norm(%v, %b, %b) {axis=-1} @"k"
    %y = transpose(%k) {perm=[0,3,1,2]} @"y"
    return %y })",
                              ops());
  const FusionPlan plan = make_plan(g);
  EXPECT_EQ(groups(plan), (std::vector<std::string>{"FusedLayerNorm", "FusedLinear", "FusedLayerNorm"}));
  EXPECT_EQ(plan.find("Linear@a")->epilogue, (std::vector<std::string>{"u", "l", "r"}));
  EXPECT_EQ(plan.find("LayerNorm@k")->epilogue, (std::vector<std::string>{"v", "y"}));
  EXPECT_EQ(verdict(plan, "r", "v"), "two_anchors");
  EXPECT_EQ(verdict(plan, "t", "n"), "producer_kind");
  expect_same_values(g, plan);
}

TEST(Rules, ATransposeJoinsANormOnlyBetweenTwoThatCancel) {
  const std::string norm = kConv + "%s = const rand<2> : f32[4]\n %t = transpose(%c) {perm=[0,2,3,1]} @\"t\"\n" +
                           " %n = layer_norm(%t, %s, %s) {axis=-1} @\"n\"\n";
  const Graph pair = graph_of(norm + " %y = transpose(%n) {perm=[0,3,1,2]} @\"u\"");
  const FusionPlan plan = make_plan(pair);
  EXPECT_TRUE(plan.find("ConvBN@c")->epilogue.empty());
  EXPECT_EQ(plan.find("LayerNorm@n")->epilogue, (std::vector<std::string>{"t", "u"}));
  expect_same_values(pair, plan);
  for (const char* tail : {" %y = exp(%n)", " %y = transpose(%n) {perm=[0,2,3,1]}"}) {
    const Graph alone = graph_of(norm + tail);
    EXPECT_EQ(make_plan(alone).find("ConvBN@c")->epilogue, (std::vector<std::string>{"t"})) << tail;
  }
  const Graph shared = graph_of(norm + " %y = transpose(%n) {perm=[0,3,1,2]}\n %z2 = exp(%n)", "%y, %z2");
  EXPECT_EQ(make_plan(shared).find("ConvBN@c")->epilogue, (std::vector<std::string>{"t"}));
}

TEST(Rules, OtherMovementsOfElementsEndAGroup) {
  for (const char* other : {"[0,1,3,2]", "[0,2,1,3]", "[3,0,1,2]"}) {
    const Graph g = graph_of(kConv + "%a = tanh(%c) @\"a\"\n %y = transpose(%a) {perm=" + other + "} @\"t\"");
    const FusionPlan plan = make_plan(g);
    EXPECT_EQ(verdict(plan, "c", "a"), "fused");
    EXPECT_EQ(verdict(plan, "a", "t"), "moves_elements") << other;
  }
  const std::string channels = "%t = transpose(%c) {perm=[0,2,3,1]} @\"t\"\n";
  const Graph shared = graph_of(kConv + channels + "%y = neg(%t)\n %q = exp(%c)", "%y, %q");  // c is stored anyway
  EXPECT_EQ(verdict(make_plan(shared), "c", "t"), "moves_elements");
  const Graph alone = graph_of("%c = exp(%x) @\"c\"\n" + channels + "%y = neg(%t)");  // no store of its own
  EXPECT_EQ(verdict(make_plan(alone), "c", "t"), "moves_elements");
}

TEST(Rules, AGraphOutputOnTheWayIsStored) {
  const Graph g = graph_of("%a = exp(%x) @\"a\"\n %y = neg(%a) @\"b\"", "%y, %a");
  const FusionPlan plan = make_plan(g);
  EXPECT_TRUE(plan.applied().empty());
  EXPECT_EQ(verdict(plan, "a", "b"), "graph_output");
}

TEST(Rules, ABroadcastIsNotRecomputedPerElement) {
  const Graph g = parse_graph(
      "graph (%x: f32[1,4,8,8], %s: f32[1,4,1,1]) {\n %g = sigmoid(%s) @\"g\"\n %y = mul(%x, %g) @\"m\"\n return %y\n}",
      ops());
  const FusionPlan plan = make_plan(g);
  EXPECT_TRUE(plan.applied().empty());
  EXPECT_EQ(verdict(plan, "g", "m"), "shape_changes");
}

TEST(Rules, ALimitIsToldWithItsNumber) {
  std::string body = "%v0 = exp(%x) @\"n0\"\n";
  for (int i = 1; i < 10; ++i)
    body += "%v" + std::to_string(i) + " = neg(%v" + std::to_string(i - 1) + ") @\"n" + std::to_string(i) + "\"\n";
  const Graph g = graph_of(body + "%y = abs(%v9)");
  PlanOptions options;
  options.max_nodes = 4;
  const FusionPlan plan = make_plan(g, options);
  for (const Candidate* c : plan.applied()) EXPECT_LE(c->nodes.size(), 4u);
  EXPECT_EQ(verdict(plan, "n3", "n4"), "too_large");
  expect_same_values(g, plan);
}

/// A chain of `length` nodes, planned; nodes that a target was asked about are counted.
FusionPlan plan_chain(int length, size_t& asked, const std::function<bool(const Node&)>& refused) {
  std::string body;
  for (int i = 0; i < length; ++i)
    body +=
        fmt::format(" %v{} = {}(%{}) @\"n{}\"\n", i, i % 2 ? "relu" : "tanh", i ? fmt::format("v{}", i - 1) : "x", i);
  const Graph g = graph_of(body, fmt::format("%v{}", length - 1));
  PlanOptions options;
  options.legal = [&](const Node& node) -> std::optional<Decline> {
    asked += node.body->nodes().size();
    if (refused(node)) return Decline{"refused", "by the test", {}};
    return std::nullopt;
  };
  return make_plan(g, options);
}

TEST(Rules, AskOfAChainInProportionToItsLength) {
  size_t asked = 0;
  const FusionPlan plan = plan_chain(1024, asked, [](const Node&) { return false; });
  ASSERT_EQ(plan.applied().size(), 16u);
  for (const Candidate* c : plan.applied()) EXPECT_EQ(c->nodes.size(), 64u);
  EXPECT_LE(asked, 2u * 1024);
}

TEST(Rules, StepsTakenTogetherStopWhereSingleOnesWould) {
  size_t asked = 0;
  const FusionPlan plan = plan_chain(40, asked, [](const Node& n) { return n.body->nodes().size() > 13; });
  std::vector<size_t> sizes;
  for (const Candidate* c : plan.applied()) sizes.push_back(c->nodes.size());
  EXPECT_EQ(sizes, (std::vector<size_t>{13, 13, 13}));
  EXPECT_EQ(verdict(plan, "n12", "n13"), "refused");
}

TEST(Rules, IllegalGrowthStopsWithTheReasonInTheLedger) {
  const Graph g = graph_of(kConv + "%a = tanh(%c) @\"a\"\n %y = asinh(%a) @\"b\"");
  PlanOptions options;
  options.legal = [](const Node& node) -> std::optional<Decline> {
    for (const Node* n : node.body->nodes())
      if (n->is("asinh")) return Decline{"no_code", "asinh has no code", {}};
    return std::nullopt;
  };
  const FusionPlan plan = make_plan(g, options);
  EXPECT_EQ(verdict(plan, "c", "a"), "fused");
  EXPECT_EQ(verdict(plan, "a", "b"), "no_code");
}

TEST(Ledger, JudgesEveryEdge) {
  ZooOptions small;
  small.width = 0.125;
  const Graph g = prepared(build_zoo("mobilenet_v2", small));
  const FusionPlan plan = make_plan(g);
  size_t edges = 0;
  for (const Node* node : g.nodes())
    for (const Value* v : node->inputs) edges += v && v->producer ? 1 : 0;
  EXPECT_EQ(plan.edges.size(), edges);
  for (const EdgeVerdict& e : plan.edges) {
    EXPECT_NE(e.group.empty(), e.decline.code.empty());
    EXPECT_NE(e.decline.code, "not_tried");
  }
}

TEST(Explain, TellsAMissedPatternWithItsReasonAndSaving) {
  const Graph g = graph_of(kConv + "%r = relu(%c) @\"r\"\n %y = add(%c, %r) @\"sum\"");
  const FusionPlan plan = make_plan(g);
  const std::string text = remarks_text(missed(g, plan));
  EXPECT_NE(text.find("ConvBNReLU at r   multi_consumer   would save 2.0 kB"), std::string::npos) << text;
  EXPECT_NE(text.find("also read by add \"sum\""), std::string::npos) << text;
}

TEST(Explain, TellsAllAboutANode) {
  const Graph g = graph_of(kConv + "%y = relu(%c) @\"r\"");
  const FusionPlan plan = make_plan(g);
  const std::vector<Remark> remarks = about_node(g, plan, "r");
  ASSERT_FALSE(remarks.empty());
  EXPECT_EQ(remarks[0].kind, "passed");
  EXPECT_EQ(remarks[0].rule, "ConvBNReLU");
  const std::string json = remarks_json(remarks);
  EXPECT_NE(json.find("\"schema\": \"opfuse.explain/1\""), std::string::npos);
  EXPECT_THROW(about_node(g, plan, "q"), Error);
  EXPECT_NE(explain_node(g, "r").find("conv:conv [bn:batch_norm] act:{relu"), std::string::npos);
}

}  // namespace
}  // namespace opfuse
