// Choosing groups: selection, overlap, convexity, legality, edits, and the plan as a file.
#include <gtest/gtest.h>

#include "fusion/prepared.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "opfuse/error.hpp"

namespace opfuse {
namespace {

std::string error_name(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.diagnostic().name;
  }
  return "no error";
}

void expect_same_values(const Graph& a, const Graph& b) {
  const std::vector<Tensor> inputs = random_inputs(a);
  const auto want = interpret(a, inputs), got = interpret(b, inputs);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]).relative(), 1e-6);
}

// One 3x3 convolution per line; enough for most topologies.
Graph convs(const std::string& body, const std::string& results = "%y") {
  return prepared_text("graph (%x: f32[1,4,8,8], %z: f32[1,4,8,8]) {\n %w = const rand<1> : f32[4,4,3,3]\n" + body +
                       "\n return " + results + "\n}");
}

const std::string kConv = "(%x, %w) {pads=[1,1,1,1]} @\"c\"\n";

TEST(Planner, MakesOneFusedNodeWithTheOriginalNodesAsBody) {
  const Graph g = convs("%c = conv" + kConv + "%y = relu(%c) @\"r\"");
  const FusionPlan plan = make_plan(g);
  ASSERT_EQ(plan.applied().size(), 1u);
  const Candidate& c = *plan.applied()[0];
  EXPECT_EQ(c.id, "ConvBNReLU@r");
  EXPECT_EQ(c.label, "FusedConvBNReLU__c");
  EXPECT_EQ(c.nodes, (std::vector<std::string>{"c", "r"}));
  EXPECT_EQ(c.reads, (std::vector<std::string>{"x", "w"}));
  EXPECT_EQ(c.bytes_saved, 2 * 4 * 8 * 8 * 4);
  const Graph fused = apply(g, plan);
  verify(fused);
  ASSERT_EQ(fused.nodes().size(), 1u);
  EXPECT_EQ(fused.nodes()[0]->op, fused_op());
  EXPECT_EQ(fused.nodes()[0]->body->nodes().size(), 2u);
  EXPECT_EQ(fused.nodes()[0]->sources.size(), 2u);
  EXPECT_EQ(fused.outputs()[0]->name, "y");
  std::string why;
  EXPECT_TRUE(equal(parse_graph(print(fused, {.max_constant_elements = 1000}), ops()), fused, &why)) << why;
  expect_same_values(g, fused);
}

TEST(Planner, AConstantIsNeverAResidual) {
  const Graph g = convs("%k = const rand<3> : f32[1,4,1,1]\n %c = conv" + kConv + "%a = add(%c, %k)\n %y = relu(%a)");
  const FusionPlan plan = make_plan(g);
  ASSERT_EQ(plan.applied().size(), 1u);
  EXPECT_EQ(plan.applied()[0]->pattern, "ConvBNReLU");
  EXPECT_EQ(plan.applied()[0]->points, (std::vector<QdqPoint>{{"INPUT", "x"}}));
}

TEST(Planner, TheBiasSnippetWithUnsqueezesIsOneModule) {
  const Graph g = prepared_text(R"(graph (%input: f32[1,3,32,32]) {
    %w = const rand<1> : f32[16,3,3,3]
    %own = const rand<2> : f32[16]
    %bias = const rand<3> : f32[16]
    %last = const dense<-1> : i64[1]
    %c = conv(%input, %w, %own) {pads = [1,1,1,1]} @"/conv/Conv"
    %u = unsqueeze(%bias, %last) @"/Unsqueeze"
    %v = unsqueeze(%u, %last) @"/Unsqueeze_1"
    %b = add(%c, %v) @"/Add"
    %y = relu(%b) @"/relu/Relu"
    return %y })");
  const FusionPlan plan = make_plan(g);
  EXPECT_EQ(plan.module_counts(), (std::map<std::string, int>{{"FusedConvBNReLU", 1}}));
  EXPECT_EQ(qdq_summary(plan).declared, 1u);
  EXPECT_EQ(plan.applied()[0]->points, (std::vector<QdqPoint>{{"INPUT", "input"}}));
  EXPECT_EQ(apply(g, plan).nodes().size(), 1u);
}

TEST(Planner, AnAddOfAConvolutionWithItselfHasNoResidual) {
  const Graph g = convs("%c = conv" + kConv + "%a = add(%c, %c)\n %y = relu(%a)");
  for (const Candidate& c : make_plan(g).candidates) EXPECT_NE(c.pattern, "ConvBNAddReLU");
}

TEST(Planner, ABroadcastOperandIsNoResidual) {
  const Graph g = prepared_text(
      "graph (%x: f32[1,4,8,8], %s: f32[1,4,1,1]) {\n %w = const rand<1> : f32[4,4,3,3]\n %c = conv(%x, %w) "
      "{pads=[1,1,1,1]}\n %a = add(%c, %s)\n %y = relu(%a)\n return %y\n}");
  for (const Candidate& c : make_plan(g).candidates) EXPECT_NE(c.pattern, "ConvBNAddReLU");
}

TEST(Planner, TheResidualOfADownsampleBlockIsTheShallowBranchInEitherOperandOrder) {
  for (const char* add : {"%a = add(%d, %e)", "%a = add(%e, %d)"}) {
    const Graph g = convs("%c = conv" + kConv + "%r = relu(%c)\n %d = conv(%r, %w) {pads=[1,1,1,1]} @\"deep\"\n" +
                          "%e = conv(%z, %w) {pads=[1,1,1,1]} @\"down\"\n" + add + "\n %y = relu(%a) @\"out\"");
    const FusionPlan plan = make_plan(g);
    const Candidate* c = plan.find("ConvBNAddReLU@out");
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->nodes.front(), "deep");
    EXPECT_EQ(c->points[1], (QdqPoint{"RESIDUAL_INPUT", "e"}));
    EXPECT_FALSE(c->notes.empty());
    ASSERT_NE(plan.find("ConvBN@down"), nullptr);
    EXPECT_TRUE(plan.find("ConvBN@down")->apply);
  }
}

TEST(Planner, AnIllegalGroupLeavesItsNodesToShorterPatterns) {
  const Graph g = convs("%c = conv" + kConv + "%y = relu(%c) @\"r\"");
  PlanOptions options;
  options.rules = false;
  options.legal = [](const Node& node) -> std::optional<Decline> {
    if (node.body->nodes().size() > 1) return Decline{"stage_sequence", "one node at a time", {}};
    return std::nullopt;
  };
  const FusionPlan plan = make_plan(g, options);
  EXPECT_EQ(plan.find("ConvBNReLU@r")->decline->code, "stage_sequence");
  EXPECT_TRUE(plan.find("ConvBN@c")->apply);
  EXPECT_EQ(plan.missed().size(), 1u);
}

TEST(Planner, RefusesAGroupThatWouldCloseACycleWithAnother) {
  // Each conv+add+relu reads what the other group makes: only one of them may be a group of three.
  const Graph g = convs(
      "%a = conv(%x, %w) {pads=[1,1,1,1]} @\"a\"\n %b = conv(%z, %w) {pads=[1,1,1,1]} @\"b\"\n"
      "%p = max_pool(%a) {kernel_shape=[1,1]}\n %q = max_pool(%b) {kernel_shape=[1,1]}\n"
      "%s = add(%a, %q)\n %t = add(%b, %p)\n %u = relu(%s) @\"u\"\n %v = relu(%t) @\"v\"",
      "%u, %v");
  const FusionPlan plan = make_plan(g);
  const Graph fused = apply(g, plan);  // throws on a cycle
  verify(fused);
  expect_same_values(g, fused);
}

TEST(Planner, SkipAndOnlyNamePatternsAndNodes) {
  const Graph g = convs("%c = conv" + kConv + "%y = relu(%c) @\"r\"");
  PlanOptions skip;
  skip.skip = {"ConvBNReLU@r"};
  const FusionPlan plan = make_plan(g, skip);
  EXPECT_EQ(plan.find("ConvBNReLU@r")->decline->code, "disabled");
  EXPECT_TRUE(plan.find("ConvBN@c")->apply);
  PlanOptions only;
  only.only = {"ConvBN"};
  EXPECT_EQ(make_plan(g, only).module_counts(), (std::map<std::string, int>{{"FusedConvBN", 1}}));
  PlanOptions wrong;
  wrong.skip = {"ConvBNRelu"};
  EXPECT_EQ(error_name([&] { make_plan(g, wrong); }), "unknown_name");
}

TEST(Planner, APriorityClaimsNodesBeforeSize) {
  const Graph g = convs("%c = conv" + kConv + "%y = relu(%c) @\"r\"");
  std::vector<FusionPattern> patterns = fusion_patterns();
  patterns.push_back(conv_bn());
  patterns.back().name = "Bare";
  patterns.back().priority = 1;
  PlanOptions options;
  options.patterns = &patterns;
  options.rules = false;
  const FusionPlan plan = make_plan(g, options);
  EXPECT_TRUE(plan.find("Bare@c")->apply);
  EXPECT_EQ(plan.find("ConvBNReLU@r")->decline->evidence, (std::vector<std::string>{"Bare@c"}));
}

TEST(Plan, SurvivesJsonAndAppliesAgain) {
  const Graph g = convs("%c = conv" + kConv + "%d = conv(%c, %w) {pads=[1,1,1,1]}\n %a = add(%d, %z)\n %y = relu(%a)");
  const FusionPlan plan = make_plan(g);
  const std::string json = to_json(plan);
  const FusionPlan again = plan_from_json(json);
  EXPECT_EQ(again, plan);
  EXPECT_EQ(to_json(again), json);
  EXPECT_TRUE(equal(apply(g, again), apply(g, plan)));
}

TEST(Plan, EditsTakeEffect) {
  const Graph g = convs("%c = conv" + kConv + "%y = relu(%c) @\"r\"");
  FusionPlan plan = make_plan(g);
  plan.at("ConvBNReLU@r").apply = false;
  EXPECT_EQ(apply(g, plan).nodes().size(), 2u);
  plan.at("ConvBN@c").apply = true;
  EXPECT_EQ(apply(g, plan).nodes()[0]->op, fused_op());
  plan.at("ConvBNReLU@r").apply = true;
  EXPECT_EQ(error_name([&] { apply(g, plan); }), "bad_option");
  EXPECT_EQ(error_name([&] { plan.at("ConvBNReLU@s"); }), "unknown_name");
}

TEST(Plan, IsRefusedForAnotherModelUnlessAllowed) {
  const Graph g = convs("%c = conv" + kConv + "%y = relu(%c) @\"r\"");
  const Graph other = convs("%c = conv" + kConv + "%y = elu(%c) @\"r\"");
  const FusionPlan plan = make_plan(g);
  EXPECT_EQ(error_name([&] { apply(other, plan); }), "stale_plan");
  EXPECT_EQ(apply(other, plan, true).nodes().size(), 1u);
  const Graph renamed = convs("%c = conv(%x, %w) {pads=[1,1,1,1]} @\"c2\"\n %y = relu(%c) @\"r\"");
  EXPECT_EQ(error_name([&] { apply(renamed, plan, true); }), "stale_plan");
}

TEST(Plan, DamagedFilesAreErrors) {
  for (const char* text : {"", "{", "[]", "{\"schema\": \"opfuse.plan/3\"}", "{\"schema\": \"opfuse.plan/2\"}",
                           "{\"schema\": \"opfuse.plan/2\", \"model\": 3, \"matches\": []}"})
    EXPECT_EQ(error_name([&] { plan_from_json(text); }), "bad_file") << text;
}

TEST(Plan, AKeyThatNothingReadsIsAnErrorWithTheOneThatMayBeMeant) {
  const Graph g = convs("%c = conv" + kConv + "%y = relu(%c) @\"r\"");
  std::string json = to_json(make_plan(g));
  json.replace(json.find("\"apply\""), 7, "\"appply\"");
  try {
    plan_from_json(json);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "bad_file");
    EXPECT_EQ(error.diagnostic().hint, "did you mean \"apply\"?");
  }
}

TEST(Plan, SchemasOfLaterReleasesNameThem) {
  try {
    plan_from_json(R"({"schema": "opfuse.plan/3", "since": "0.8.0"})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().message,
              "the plan has schema \"opfuse.plan/3\"; this opfuse reads \"opfuse.plan/1\" and \"opfuse.plan/2\"");
    EXPECT_EQ(error.diagnostic().hint.substr(0, 33), "opfuse 0.8.0 or later reads it; `");
  }
}

TEST(Apply, AsksWhetherAnEditedGroupIsLegal) {
  const Graph graph = prepared_text(R"(graph (%x: f32[1,3,8,8]) {
    %w = const rand<1> : f32[4,3,3,3]
    %a = conv(%x, %w)
    %y = relu(%a)
    return %y })");
  const FusionPlan plan = make_plan(graph);
  ASSERT_EQ(plan.applied().size(), 1u);
  int asked = 0;
  const Legality legal = [&](const Node& node) {
    return ++asked, node.body ? std::nullopt : std::optional<Decline>({});
  };
  EXPECT_EQ(apply(graph, plan, false, legal).nodes().size(), 1u);
  EXPECT_EQ(asked, 1);
  const Legality never = [](const Node&) { return std::optional(Decline{"too_wide", "eleven lanes", {}}); };
  try {
    apply(graph, plan, false, never);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().name, "bad_option");
    EXPECT_NE(error.diagnostic().message.find("too_wide: eleven lanes"), std::string::npos) << error.what();
  }
  EXPECT_EQ(apply(graph, plan).nodes().size(), 1u) << "without a question nothing is refused";
}

}  // namespace
}  // namespace opfuse
