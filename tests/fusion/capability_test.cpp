// What a target's file says of groups, edited as text: what fuses, what does not and why, and what would satisfy it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "fusion/prepared.hpp"
#include "fusion/reasons.hpp"
#include "fusion/user/capability_rules.hpp"
#include "fusion/user/target_advice.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "target/capabilities.hpp"

namespace opfuse {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kHead =
    "schema = 1\nkind = \"planning\"\n[device]\nmultiply_adds_per_second = 1e12\nbytes_per_second = 1e9\n"
    "launch_seconds = 1e-5\n";
const std::string kConvAlone = kHead + "[[anchor]]\nops = [\"conv\"]\n";

TargetFile target_of(const std::string& text) {
  TargetFile file = read_target_text(text, "t.toml");
  EXPECT_TRUE(file.mistakes.empty()) << file.mistakes[0].message;
  return file;
}

struct Planned {
  TargetFile file;
  Graph graph;
  FusionPlan plan;
};

Planned planned(const std::string& toml, const std::string& graph) {
  Planned p{target_of(toml), prepared_text(graph), {}};
  const CapabilityRules rules(p.file.target, p.file.capabilities);
  std::vector<FusionPattern> patterns = rules.composites();
  patterns.insert(patterns.end(), fusion_patterns().begin(), fusion_patterns().end());
  PlanOptions options;
  options.target = p.file.target.name;
  options.patterns = &patterns;
  options.legal = [&](const Node& node) { return rules.refuse(node); };
  p.plan = make_plan(p.graph, options);
  rules.settle_points(p.graph, p.plan);
  const std::vector<Tensor> inputs = random_inputs(p.graph);
  EXPECT_TRUE(interpret(apply(p.graph, p.plan), inputs)[0].same_bits(interpret(p.graph, inputs)[0]));
  return p;
}

/// "conv relu" of each applied group, in order.
std::vector<std::string> groups_of(const Planned& p) {
  std::vector<std::string> all;
  for (const Candidate* c : p.plan.applied()) {
    std::string nodes;
    for (const std::string& name : c->nodes) nodes += (nodes.empty() ? "" : " ") + name;
    all.push_back(nodes);
  }
  return all;
}

/// "code: message" of the edge.
std::string verdict(const Planned& p, const std::string& producer, const std::string& consumer) {
  for (const EdgeVerdict& e : p.plan.edges)
    if (e.producer == producer && e.consumer == consumer)
      return e.group.empty() ? e.decline.code + ": " + e.decline.message : "fused";
  return "no such edge";
}

const std::string kResidual =
    "graph (%x: f32[1,8,6,6]) {\n%w = const rand<1> : f32[8,8,3,3]\n%c = conv(%x, %w) {pads=[1,1,1,1]} @\"conv\"\n"
    "%a = add(%c, %x) @\"add\"\n%y = relu(%a) @\"relu\"\nreturn %y }";

std::vector<Advice> advice_on(const Planned& p) {
  return target_advice(p.graph, p.plan, p.file.target, p.file.capabilities);
}

TEST(Capabilities, NothingFusesThatTheFileDoesNotList) {
  const Planned p = planned(kConvAlone, kResidual);
  EXPECT_THAT(groups_of(p), ElementsAre("conv"));
  EXPECT_EQ(verdict(p, "conv", "add"), "epilogue_operator: t applies nothing behind conv (t.toml:7), not add \"add\"");
  EXPECT_EQ(find_reason("epilogue_operator")->change, "a slot in epilogue of its [[anchor]]");
}

TEST(Capabilities, AnEpilogueIsARowOfTheFile) {
  const std::string sum = kConvAlone + "epilogue = [{ ops = [\"add\"], operand = \"whole\" }]\n";
  EXPECT_THAT(groups_of(planned(sum, kResidual)), ElementsAre("conv add"));
  const std::string both = kConvAlone + "epilogue = [{ ops = [\"add\"] }, { ops = [\"activation\"] }]\n";
  EXPECT_THAT(groups_of(planned(both, kResidual)), ElementsAre("conv add relu"));
}

TEST(Capabilities, SlotsStandInTheOrderOfTheHardware) {
  const Planned p = planned(kConvAlone + "epilogue = [{ ops = [\"activation\"] }, { ops = [\"add\"] }]\n", kResidual);
  EXPECT_THAT(groups_of(p), ElementsAre("conv add"));
  EXPECT_THAT(verdict(p, "add", "relu"), HasSubstr("epilogue_order: t applies activation, then add behind conv"));
}

TEST(Capabilities, HowManyAndWhatTheyReadAreLimited) {
  const std::string chain =
      "graph (%x: f32[1,8,6,6]) {\n%w = const rand<1> : f32[8,8,1,1]\n%b = const rand<2> : f32[8,1,1]\n"
      "%c = conv(%x, %w) @\"conv\"\n%a = mul(%c, %b) @\"scale\"\n%r = tanh(%a) @\"tanh\"\n%y = abs(%r) @\"abs\"\n"
      "return %y }";
  const std::string slots = "epilogue = [{ ops = [\"elementwise\"], most = 2 }]\n";
  const Planned two = planned(kConvAlone + slots, chain);
  EXPECT_THAT(groups_of(two), ElementsAre("conv scale tanh"));
  EXPECT_THAT(verdict(two, "tanh", "abs"), HasSubstr("epilogue_length: t applies at most 2"));
  const Planned none =
      planned(kConvAlone + "epilogue = [{ ops = [\"elementwise\"], most = 9, operand = \"none\" }]\n", chain);
  EXPECT_THAT(groups_of(none), ElementsAre("conv"));
  EXPECT_THAT(verdict(none, "conv", "scale"), HasSubstr("epilogue_condition: "));
  EXPECT_THAT(verdict(none, "conv", "scale"), HasSubstr("it reads f32[8] besides"));
  EXPECT_THAT(groups_of(planned(kConvAlone + slots + "most_epilogue = 1\n", chain)), ElementsAre("conv scale"));
}

TEST(Capabilities, ConditionsAreThoseOfPatternFiles) {
  const std::string rows = kConvAlone + "where = [\"op.in_channels % 16 == 0\"]\nepilogue = [{ ops = [\"add\"] }]\n";
  const Planned p = planned(rows, kResidual);
  EXPECT_TRUE(p.plan.applied().empty());
  const Candidate* conv = p.plan.find("ConvBN@conv");
  ASSERT_TRUE(conv && conv->decline);
  EXPECT_EQ(conv->decline->code, "anchor_condition");
  EXPECT_THAT(conv->decline->message, HasSubstr("op.in_channels % 16 == 0 does not hold: op.in_channels is 8; "
                                                "pad op.in_channels by 8"));
  const std::string slot = kConvAlone + "epilogue = [{ ops = [\"add\"], where = [\"anchor.kernel[0] == 1\"] }]\n";
  EXPECT_THAT(verdict(planned(slot, kResidual), "conv", "add"),
              HasSubstr("anchor.kernel[0] == 1 does not hold: anchor.kernel is [3, 3]"));
}

TEST(Capabilities, OperatorsAndLimits) {
  const std::string ops = kConvAlone + "epilogue = [{ ops = [\"add\"] }]\n[[operator]]\nops = [\"conv\"]\n";
  EXPECT_THAT(verdict(planned(ops, kResidual), "conv", "add"), "no_operator: add \"add\" is not in t's operators");
  const std::string limits = kConvAlone + "epilogue = [{ ops = [\"add\", \"relu\"], most = 2 }]\n[limits]\nnodes = 2\n";
  const Planned p = planned(limits, kResidual);
  EXPECT_THAT(groups_of(p), ElementsAre("conv add"));
  EXPECT_EQ(verdict(p, "add", "relu"), "target_limit: t allows nodes = 2, the group has 3");
}

TEST(Capabilities, APrologueIsARowToo) {
  const std::string padded =
      "graph (%x: f32[1,8,6,6]) {\n%a = abs(%x) @\"abs\"\n%y = reduce_sum(%a) {axes=[3]} @\"sum\"\nreturn %y }";
  const std::string row = kHead + "[[anchor]]\nops = [\"reduction\"]\n";
  EXPECT_THAT(verdict(planned(row, padded), "abs", "sum"), HasSubstr("prologue_operator: t takes nothing in front of"));
  EXPECT_THAT(groups_of(planned(row + "prologue = [{ ops = [\"abs\"] }]\n", padded)), ElementsAre("abs sum"));
}

const std::string kLinear =
    "graph (%x: f32[4,20]) {\n%w = const rand<1> : f32[20,30]\n%b = const rand<2> : f32[30]\n"
    "%m = matmul(%x, %w) @\"mm\"\n%a = add(%b, %m) @\"bias\"\n%y = relu(%a) @\"relu\"\nreturn %y }";
const std::string kTile =
    "[[composite]]\nname = \"Tile\"\ntopology = \"linear_block [act:{relu|gelu}]\"\nroot = \"linear\"\n";

TEST(Capabilities, ACompositeClaimsItsWholeEpilogue) {
  const Planned p = planned(kHead + kTile, kLinear);
  EXPECT_THAT(groups_of(p), ElementsAre("mm bias relu"));
  EXPECT_EQ(p.plan.applied()[0]->pattern, "Tile");
}

TEST(Capabilities, AFailingPreconditionSaysWhatWouldSatisfyIt) {
  const Planned p = planned(kHead + kTile + "needs = [\"linear.out_features % 16 == 0\"]\n", kLinear);
  EXPECT_TRUE(p.plan.applied().empty());
  const Candidate* tile = p.plan.find("Tile@relu");
  ASSERT_TRUE(tile && tile->decline);
  EXPECT_EQ(tile->decline->code, "precondition");
  EXPECT_EQ(tile->decline->message,
            "linear.out_features % 16 == 0 does not hold: linear.out_features is 30; pad linear.out_features by 2");
  const std::vector<Advice> advice = advice_on(p);
  ASSERT_FALSE(advice.empty());
  EXPECT_THAT(sentence_of(advice[0]), HasSubstr("what Tile needs"));
}

TEST(Capabilities, AdviceRanksByTime) {
  const std::string two =
      "graph (%x: f32[1,8,64,64]) {\n%w = const rand<1> : f32[8,8,1,1]\n%c = conv(%x, %w) @\"c\"\n"
      "%r = tanh(%c) @\"t\"\n%p = max_pool(%r) {kernel_shape=[8,8], strides=[8,8]} @\"p\"\n%d = conv(%p, %w) @\"d\"\n"
      "%y = sigmoid(%d) @\"s\"\nreturn %y }";
  const Planned p = planned(kConvAlone, two);
  const std::vector<Advice> advice = advice_on(p);
  ASSERT_EQ(advice.size(), 2U);
  EXPECT_EQ(sentence_of(advice[0]), "tanh in the epilogue of conv would fuse 1 edge, 0.3 MB, 272 us");
  EXPECT_EQ(advice[1].lacks, "sigmoid in the epilogue of conv");
}

TEST(Capabilities, PointsThatTheTargetLeavesAreGone) {
  const std::string row =
      kHead + kTile +
      "points = { INPUT = \"linear\" }\n[[quantize.leave]]\nname = \"small\"\n"
      "topology = \"linear:{gemm|matmul}\"\nwhere = [\"linear.out_features < 64\"]\nwhy = \"small\"\n";
  const Planned p = planned(row, kLinear);
  EXPECT_TRUE(p.plan.applied()[0]->points.empty());
  EXPECT_THAT(p.plan.applied()[0]->notes, Contains("stays in floating point on t: small"));
  const std::string wide = row.substr(0, row.find("< 64")) + "< 16\"]\n";
  EXPECT_EQ(planned(wide, kLinear).plan.applied()[0]->points.size(), 1U);
}

std::vector<std::string> mistakes_in(const std::string& text) {
  TargetFile file = read_target_text(text, "t.toml");
  if (file.mistakes.empty()) CapabilityRules(file.target, file.capabilities, &file.mistakes);
  std::vector<std::string> lines;
  for (const TargetMistake& m : file.mistakes)
    lines.push_back(fmt::format("{}:{}: {}{}", m.line, m.column, m.message, m.hint.empty() ? "" : " | " + m.hint));
  return lines;
}

TEST(Capabilities, EveryMistakeHasItsPlace) {
  EXPECT_THAT(mistakes_in(kHead + "[[ancor]]\nops = []\n"),
              ElementsAre("7:1: [ancor] is not a section of a target | did you mean \"anchor\"?"));
  EXPECT_THAT(mistakes_in(kHead + "[[anchor]]\nop = [\"conv\"]\nepilogue = [{ ops = [\"relu\"], most = 0 }]\n"),
              ElementsAre("7:1: [[anchor]] lacks ops", HasSubstr("8:6: [[anchor]] has no field \"op\" | did you mean"),
                          "9:38: most = 0 is outside [1, 4096]"));
  EXPECT_THAT(mistakes_in(kConvAlone + "where = [\"op.in_chanels == 1\"]\nepilogue = [{ ops = [\"rellu\"] }]\n"),
              ElementsAre(HasSubstr("9:14: op:conv has no property \"in_chanels\""),
                          "10:23: there is no operator 'rellu' | did you mean \"relu\"?"));
  EXPECT_THAT(mistakes_in(kHead + "[[composite]]\nname = \"T\"\ntopology = \"matmull\"\n"),
              ElementsAre("9:13: there is no operator \"matmull\" | did you mean \"matmul\"?"));
  EXPECT_THAT(mistakes_in(kHead + "[quantize]\nactivations = \"int9\"\npoints = [\"INPUTS\"]\n"),
              ElementsAre("8:15: activations cannot be \"int9\" | did you mean \"int4\"?"));
  EXPECT_THAT(mistakes_in(kHead + "[quantize]\npoints = [\"INPUTS\"]\n"),
              ElementsAre("8:12: there is no Q/DQ point 'INPUTS' | did you mean \"INPUT\"?"));
  EXPECT_THAT(mistakes_in(kHead + "[[composite]]\nname = \"Linear\"\ntopology = \"matmul\"\n"),
              ElementsAre(HasSubstr("the catalogue has a pattern Linear")));
  EXPECT_THAT(mistakes_in("schema = 1\nextends = \"cpu:avx2\"\n[device]\nlaunch_seconds = 1\n"),
              ElementsAre("3:1: [device] is not a section of cpu targets"));
}

TEST(Capabilities, OfShippedTargetsAreWithoutMistakes) {
  for (const std::string& name : listed_targets()) {
    std::vector<TargetMistake> mistakes;
    const TargetInfo target = parse_target(name);
    const CapabilityRules rules(target, capabilities_of(target), &mistakes);
    EXPECT_TRUE(mistakes.empty()) << name << ": " << mistakes[0].message;
  }
}

/// The plan of a zoo model on a shipped target, as `opfuse fuse` makes it.
FusionPlan plan_on(const char* name, const Graph& graph) {
  const TargetInfo target = parse_target(name);
  const CapabilityRules rules(target, capabilities_of(target));
  PlanOptions options;
  options.legal = [&](const Node& node) { return rules.refuse(node); };
  FusionPlan plan = make_plan(graph, options);
  rules.settle_points(graph, plan);
  return plan;
}

TEST(TensorRT, AHeadlessVisionTransformerHas85Points) {
  Graph graph = build_zoo("vit_b_16", {.resolution = 32, .classes = 10, .width = 0.75});
  Node* const head = graph.outputs()[0]->producer;
  ASSERT_TRUE(head->is("gemm") || head->is("matmul") || head->is("add"));
  Value* below = head->input(0);
  while (below->producer->is("matmul")) below = below->producer->input(0);
  graph.set_outputs({below});
  graph.remove_dead_nodes();
  const QdqSummary points = qdq_summary(plan_on("tensorrt", prepared(std::move(graph))));
  EXPECT_EQ(points.declared, 85U);
  EXPECT_EQ(points.tensors.size(), 85U);
}

TEST(TensorRT, ASmallProductKeepsFloatingPoint) {
  const auto model = [](int k, int n) {
    return prepared_text(
        fmt::format("graph (%x: f32[4,{}]) {{\n%w = const rand<1> : f32[{},{}]\n%m = matmul(%x, %w) "
                    "@\"mm\"\n%y = relu(%m) @\"relu\"\nreturn %y }}",
                    k, k, n));
  };
  EXPECT_EQ(qdq_summary(plan_on("tensorrt", model(512, 512))).declared, 1U);
  EXPECT_EQ(qdq_summary(plan_on("tensorrt", model(512, 511))).declared, 0U);
}

TEST(TensorRT, FusesByItsCatalogue) {
  const auto group = [](const std::string& body) {
    const Graph graph =
        prepared_text("graph (%x: f32[1,8,6,6]) {\n%w = const rand<1> : f32[8,8,1,1]\n" + body + "return %y }");
    std::string nodes;
    const FusionPlan plan = plan_on("tensorrt", graph);
    for (const Candidate* c : plan.applied()) {
      for (const std::string& name : c->nodes) nodes += name + " ";
      nodes += "| ";
    }
    return nodes;
  };
  EXPECT_EQ(group("%c = conv(%x, %w) @\"c\"\n%a = add(%c, %x) @\"a\"\n%y = tanh(%a) @\"t\"\n"), "c a t | ");
  EXPECT_EQ(group("%c = conv(%x, %w) @\"c\"\n%r = relu(%c) @\"r\"\n%y = add(%r, %x) @\"a\"\n"), "c r | ")
      << "a sum behind the activation is a layer of its own";
  EXPECT_EQ(group("%a = tanh(%x) @\"t\"\n%b = abs(%a) @\"a\"\n%y = mul(%b, %x) @\"m\"\n"), "t a m | ");
  EXPECT_EQ(group("%a = abs(%x) @\"a\"\n%y = reduce_sum(%a) {axes=[3]} @\"s\"\n"), "a s | ");
  EXPECT_EQ(group("%a = neg(%x) @\"n\"\n%y = reduce_sum(%a) {axes=[3]} @\"s\"\n"), "")
      << "only abs, exp and squares stand in front of a sum";
}

TEST(Capabilities, AFileAddsRowsToWhatItExtendsOrReplacesThem) {
  const std::string more =
      "schema = 1\nextends = \"tensorrt\"\n[[anchor]]\nname = \"product\"\nops = [\"gemm\"]\n"
      "[[anchor]]\nname = \"mine\"\nops = [\"cum_sum\"]\n";
  const Capabilities &base = capabilities_of(parse_target("tensorrt")), mine = target_of(more).capabilities;
  EXPECT_EQ(mine.anchors.size(), base.anchors.size() + 1);
  const auto product = [](const AnchorRow& row) { return row.name.text == "product"; };
  EXPECT_EQ(std::find_if(mine.anchors.begin(), mine.anchors.end(), product)->ops.size(), 1U);
}

}  // namespace
}  // namespace opfuse
