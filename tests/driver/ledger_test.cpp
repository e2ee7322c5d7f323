// The ledger of a compiled model says what runs: one launch, a view, a copy or two, by what, and why apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compilation.hpp"
#include "fusion/explain/edge_groups.hpp"
#include "fusion/reasons.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

using ::testing::HasSubstr;

Compilation lowered_model(const std::string& text, CompilationOptions options = {}, const char* target = "cpu:avx512") {
  Compilation c(parse_graph(text, ops()), parse_target(target), std::move(options));
  c.run_to(Milestone::lowered);
  return c;
}

const EdgeVerdict& edge_of(const Compilation& c, const std::string& producer, const std::string& consumer) {
  for (const EdgeVerdict& e : c.plan.edges)
    if (e.producer == producer && e.consumer == consumer) return e;
  throw std::runtime_error("no edge " + producer + " -> " + consumer);
}

const std::string kModel =
    "graph (%x: f32[1,16,56,56]) {\n %w = const rand<1> : f32[32,16,3,3]\n %v = const rand<2> : f32[32,64,1,1]\n"
    "%u = const rand<3> : f32[32,16,3,3]\n"
    "%a = conv(%x, %w) {pads=[1,1,1,1]} @\"a\"\n %r = relu(%a) @\"r\"\n %b = conv(%x, %u) {pads=[1,1,1,1]} @\"b\"\n"
    "%c = concat(%r, %b) {axis=1} @\"cat\"\n %y = conv(%c, %v) @\"y\"\n return %y }";

TEST(Ledger, SaysWhatRuns) {
  const Compilation c = lowered_model(kModel);
  EXPECT_EQ(edge_of(c, "a", "r").executed, kOneLaunch);
  EXPECT_EQ(edge_of(c, "a", "r").by, "ConvBNReLU@r");
  EXPECT_EQ(edge_of(c, "r", "cat").executed, kView);
  EXPECT_EQ(edge_of(c, "b", "cat").executed, kView);
  for (const EdgeVerdict& e : c.plan.edges) EXPECT_FALSE(e.executed.empty()) << e.producer << " -> " << e.consumer;
}

/// A view hides no store: what stored its memory and what reads it are two launches, with the verdict on these two.
TEST(Ledger, OfAReaderBehindAViewNamesTheLaunchInFrontOfIt) {
  const std::string model =
      "graph (%x: f32[16,64]) { %w = const rand<1> : f32[64,192]\n %a = matmul(%x, %w) @\"product\"\n"
      "%p, %q = split(%a) {axis=1, num_outputs=2} @\"halves\"\n %s = sigmoid(%q) @\"gate\"\n %y = mul(%p, %s) @\"glu\" "
      "return %y }";
  const Compilation c = lowered_model(model);
  EXPECT_EQ(edge_of(c, "product", "halves").executed, kView);
  const EdgeVerdict& edge = edge_of(c, "halves", "gate");
  EXPECT_EQ(edge.executed, kTwoLaunches);
  EXPECT_THAT(edge.decline.message, HasSubstr("matmul \"product\""));
  ASSERT_TRUE(edge.price);
  EXPECT_GT(edge.price->apart.bytes, 16 * 192 * 4) << "the product is part of it";
  // of an input of the model nothing was stored
  const Compilation input = lowered_model(
      "graph (%x: f32[16,64]) { %p, %q = split(%x) {axis=1, num_outputs=2} @\"halves\"\n %s = sigmoid(%q) @\"gate\"\n"
      "%y = mul(%p, %s) @\"glu\" return %y }");
  EXPECT_EQ(edge_of(input, "halves", "gate").executed, kView);
}

/// The plan leaves movements to attention, unless that runs as several launches.
TEST(Ledger, MovementsAreLeftToAttentionThatIsOneLaunch) {
  const std::string model =
      "graph (%x: f32[1,8,2,3,16]) { %i = const dense<0> : i64[] %j = const dense<1> : i64[] %n = const dense<2> : "
      "i64[]\n"
      "%a = gather(%x, %i) {axis=3} @\"first\" %b = gather(%x, %j) {axis=3} %d = gather(%x, %n) {axis=3}\n"
      "%q = transpose(%a) {perm=[0,2,1,3]} @\"heads\" %k = transpose(%b) {perm=[0,2,3,1]}\n"
      "%v = transpose(%d) {perm=[0,2,1,3]} %c = const dense<0.25> : f32[] %s = matmul(%q, %k) %m = mul(%s, %c)\n"
      "%p = softmax(%m) {axis=-1} %y = matmul(%p, %v) return %y }";
  EXPECT_EQ(edge_of(lowered_model(model), "first", "heads").executed, kOneLaunch);  // attention's
  CompilationOptions options;
  options.plan.skip = {"ScaledDotProductAttention"};
  const Compilation c = lowered_model(model, options);
  const EdgeVerdict& edge = edge_of(c, "first", "heads");
  EXPECT_EQ(edge.executed, kOneLaunch);
  EXPECT_EQ(edge.by.find("attention"), std::string::npos) << edge.by;
}

/// Scores of [heads of a batch, ..] that are masked as [batch, heads, ..] have no kernel of their own.
TEST(Ledger, MovementsAroundAttentionInSeveralLaunchesJoin) {
  const Compilation c = lowered_model(
      "graph (%x: f32[1,8,2,3,16], %slopes: f32[2,1,8], %mask: f32[1,1,8,8]) {\n"
      "%i = const dense<0> : i64[] %j = const dense<1> : i64[] %n = const dense<2> : i64[]\n"
      "%a = gather(%x, %i) {axis=3} @\"first\" %b = gather(%x, %j) {axis=3} %d = gather(%x, %n) {axis=3}\n"
      "%q = transpose(%a) {perm=[0,2,1,3]} @\"heads\" %k = transpose(%b) {perm=[0,2,3,1]}\n"
      "%v = transpose(%d) {perm=[0,2,1,3]}\n"
      "%qs = const dense<2, 8, 16> : i64[3] %ks = const dense<2, 16, 8> : i64[3] %ss = const dense<2, 8, 8> : i64[3]\n"
      "%ms = const dense<1, 2, 8, 8> : i64[4] %q3 = reshape(%q, %qs) %k3 = reshape(%k, %ks) %v3 = reshape(%v, %qs)\n"
      "%c = const dense<0.25> : f32[] %s = matmul(%q3, %k3) @\"scores\" %m = mul(%s, %c) %t = add(%m, %slopes)\n"
      "%u = reshape(%t, %ms) %w = add(%u, %mask) %p = softmax(%w) {axis=-1} %p3 = reshape(%p, %ss)\n"
      "%y = matmul(%p3, %v3) return %y }");
  EXPECT_EQ(edge_of(c, "first", "heads").executed, kOneLaunch);
  for (const Launch& launch : c.program.launches) {
    const auto has = [&](const std::string& name) {
      return std::find(launch.sources.begin(), launch.sources.end(), name) != launch.sources.end();
    };
    EXPECT_FALSE(has("first") && has("scores")) << launch.name;
  }
  for (const EdgeVerdict& e : c.plan.edges)
    EXPECT_NE(e.decline.code, "moved_by_attention") << e.producer << " -> " << e.consumer;
}

TEST(Ledger, OfCopiesNamesTheLaunchOfEachOperand) {
  const Compilation c = lowered_model(
      "graph (%x: f32[1,16,14,14]) {\n %a = max_pool(%x) {kernel_shape=[5,5], pads=[2,2,2,2]} @\"a\"\n"
      "%b = max_pool(%a) {kernel_shape=[5,5], pads=[2,2,2,2]} @\"b\"\n"
      "%y = concat(%x, %a, %b) {axis=1} @\"cat\"\n return %y }");
  const EdgeVerdict &first = edge_of(c, "a", "cat"), &second = edge_of(c, "b", "cat");
  EXPECT_EQ(first.executed, kCopy);
  EXPECT_THAT(first.by, HasSubstr("[1]"));
  EXPECT_EQ(second.executed, kView);
}

/// The cast back to 16 bits has the result's name, and the group that made the result is one launch all the same.
TEST(Ledger, OfAHalfResultIsThatOfItsGroup) {
  const Compilation c = lowered_model(
      "graph (%x: f16[4,33]) { %a = sigmoid(%x) @\"a\"\n %b = relu(%a) @\"b\"\n"
      "%s = softmax(%b) {axis=0} @\"s\" return %b, %s }");
  EXPECT_EQ(edge_of(c, "a", "b").executed, kOneLaunch);
  for (const EdgeVerdict& e : c.plan.edges)
    EXPECT_NE(e.decline.code, "several_launches") << e.producer << " -> " << e.consumer;
}

TEST(Ledger, CallsAGainBelowTheBarSmallNotSlower) {
  const Compilation c = lowered_model(
      "graph (%x: f32[32,64]) { %t = transpose(%x) {perm=[1,0]} @\"t\"\n %a = relu(%t) @\"a\"\n"
      "%b = sigmoid(%x) @\"b\"\n %y = matmul(%b, %a) @\"y\" return %y }",
      {}, "cpu:avx512");
  const EdgeVerdict& edge = edge_of(c, "a", "y");
  EXPECT_EQ(edge.decline.code, "small_gain");
  ASSERT_TRUE(edge.price && edge.price->joined);
  EXPECT_LT(edge.price->joined->microseconds, edge.price->apart.microseconds);
  EXPECT_EQ(edge_of(c, "b", "y").decline.code, "slower");
}

/// Channels may lie in blocks or not: times are told in the layout for which the verdict is.
TEST(Ledger, TellsTimesInTheLayoutThatDecides) {
  const Compilation c = lowered_model(R"(graph (%x: f32[1,24,28,28]) {
    %w = const rand<1> : f32[58,24,1,1]
    %v = const rand<2> : f32[58,1,3,3]
    %a = conv(%x, %w) @"a"
    %r = relu(%a) @"r"
    %b = conv(%x, %w) @"b"
    %q = relu(%b) @"q"
    %c = concat(%r, %q) {axis=1} @"cat"
    %five = const dense<1,2,58,28,28> : i64[5]
    %four = const dense<1,116,28,28> : i64[4]
    %t = reshape(%c, %five)
    %u = transpose(%t) {perm=[0,2,1,3,4]}
    %s = reshape(%u, %four) @"shuffle"
    %p, %o = split(%s) {axis=1, num_outputs=2} @"split"
    %y = conv(%p, %v) {group=58, pads=[1,1,1,1]} @"y"
    return %y, %o
  })");
  size_t slower = 0;
  for (const EdgeVerdict& e : c.plan.edges) {
    if (e.decline.code != "slower" || !e.price || !e.price->joined) continue;
    ++slower;
    EXPECT_GE(e.price->joined->microseconds, e.price->apart.microseconds) << e.producer << " -> " << e.consumer;
  }
  EXPECT_GT(slower, 0u);
}

TEST(Ledger, PricesOperatorsThatAreSeveralLaunches) {
  const Compilation c = lowered_model(
      "graph (%x: f32[64,512]) { %k = const dense<5> : i64[1]\n %r = relu(%x) @\"r\"\n"
      "%v, %i = top_k(%r, %k) {axis=-1} @\"top\"\n %y = sigmoid(%v) @\"y\"\n return %y, %i }");
  for (const auto& [producer, consumer] : {std::pair("r", "top"), std::pair("top", "y")}) {
    const EdgeVerdict& edge = edge_of(c, producer, consumer);
    EXPECT_EQ(edge.decline.code, "not_generated") << edge.decline.message;
    EXPECT_THAT(edge.decline.message, HasSubstr("row loop nest"));
    ASSERT_TRUE(edge.price);
    EXPECT_GT(edge.price->apart.microseconds, 0);
  }
}

/// Growth and reads are facts of the two, whatever stands in the way; what a kernel of both would save has a bound.
TEST(Ledger, SaysHowOftenAConsumerReads) {
  CompilationOptions apart;
  apart.plan.no_fuse = {{"e", "y"}, {"y", "m"}, {"s", "q"}, {"q", "p"}};
  const Compilation c = lowered_model(
      "graph (%x: f32[1,32,28,28], %z: f32[1,32,28,28]) { %w = const rand<1> : f32[64,32,3,3]\n %e = exp(%x) @\"e\"\n"
      "%y = conv(%e, %w) {pads=[1,1,1,1]} @\"y\"\n %m = max_pool(%y) {kernel_shape=[2,2], strides=[2,2]} @\"m\"\n"
      "%k = const dense<2,3> : i64[2]\n %g = reduce_mean(%z, %k) @\"g\"\n %s = sigmoid(%g) @\"s\"\n"
      "%q = mul(%s, %z) @\"q\"\n %p = softmax(%q) {axis=-1} @\"p\" return %m, %p }",
      apart);
  const auto price = [&](const char* producer, const char* consumer) {
    const EdgeVerdict& edge = edge_of(c, producer, consumer);
    EXPECT_EQ(edge.executed, kTwoLaunches) << producer;
    EXPECT_TRUE(edge.price && edge.price->recompute) << producer;
    return edge.price.value_or(PricePair{});
  };
  EXPECT_DOUBLE_EQ(price("e", "y").growth, 2);
  EXPECT_DOUBLE_EQ(price("e", "y").recompute.value_or(0), 9);
  EXPECT_DOUBLE_EQ(price("y", "m").growth, 0.25);
  EXPECT_DOUBLE_EQ(price("y", "m").recompute.value_or(0), 1);
  EXPECT_DOUBLE_EQ(price("s", "q").growth, 784);
  EXPECT_DOUBLE_EQ(price("s", "q").recompute.value_or(0), 1);  // axes that do not name it share a read
  EXPECT_DOUBLE_EQ(price("q", "p").recompute.value_or(0), 3);  // largest, sum, quotient
}

TEST(Ledger, PricesRecurrentLayersAndBoundsWhatHasNoKernel) {
  const Compilation c = lowered_model(
      "graph (%x: f32[6,2,8]) { %w = const rand<1> : f32[1,48,8]\n %r = const rand<2> : f32[1,48,16]\n"
      "%y, %h = gru(%x, %w, %r) {hidden_size=16} @\"gru\"\n %m = const rand<3> : f32[16,4]\n"
      "%z = matmul(%y, %m) @\"z\" return %z }");
  const EdgeVerdict& edge = edge_of(c, "gru", "z");
  EXPECT_EQ(edge.executed, kTwoLaunches);
  EXPECT_EQ(change_for(edge), kNoChangeFlips);
  ASSERT_TRUE(edge.price);
  EXPECT_FALSE(edge.price->joined);
  ASSERT_TRUE(edge.price->at_best);
  EXPECT_LT(edge.price->at_best->microseconds, edge.price->apart.microseconds);
  EXPECT_LT(edge.price->at_best->bytes, edge.price->apart.bytes);
  const FusionPlan again = plan_from_json(to_json(c.plan));
  EXPECT_EQ(again.edges, c.plan.edges);
}

TEST(Ledger, ThatShapingJoinedIsNotApart) {
  const Compilation c = lowered_model(
      "graph (%x: f32[1,16,112,112]) {\n %w1 = const rand<1> : f32[96,16,1,1]\n %w2 = const rand<3> : f32[96,1,3,3]\n"
      "%a = conv(%x, %w1) @\"expand\"\n %r = relu(%a) @\"act\"\n"
      "%y = conv(%r, %w2) {group=96, pads=[1,1,1,1], strides=[2,2]} @\"depthwise\"\n return %y }");
  const EdgeVerdict& edge = edge_of(c, "act", "depthwise");
  EXPECT_EQ(edge.executed, kOneLaunch);
  EXPECT_EQ(edge.by, "join-chains");
  EXPECT_TRUE(edge.decline.code.empty());
}

TEST(Ledger, AnEdgeThatIsTwoLaunchesHasEveryField) {
  const Compilation c = lowered_model(
      "graph (%x: f32[1,8,8,8]) {\n %w = const rand<1> : f32[8,8,3,3]\n %a = conv(%x, %w) @\"first\"\n"
      "%y = conv(%a, %w) @\"second\"\n return %y }");
  const EdgeVerdict& edge = edge_of(c, "first", "second");
  EXPECT_EQ(edge.executed, kTwoLaunches);
  EXPECT_EQ(edge.decline.code, "two_anchors");
  EXPECT_THAT(edge.decline.message, testing::AllOf(HasSubstr("\"first\""), HasSubstr("\"second\"")));
  ASSERT_TRUE(edge.price);
  EXPECT_GT(edge.price->apart.bytes, 0);
  EXPECT_EQ(change_for(edge), kNoChangeFlips);
  const std::vector<EdgeGroup> groups = edge_groups(c.prepared, c.plan);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_THAT(text_of(groups[0]), HasSubstr("1 x conv -> conv   two_anchors"));
  EXPECT_THAT(text_of_edges(c.prepared, c.plan, "second", "first"), HasSubstr("executed: two_launches"));
}

TEST(Ledger, OfAnEditedPlanIsThatOfTheEdit) {
  const std::string two = "graph (%x: f32[64,256]) { %a = relu(%x) @\"a\"\n %y = sigmoid(%a) @\"b\"\n return %y }";
  auto plan = std::make_shared<FusionPlan>(lowered_model(two).plan);
  ASSERT_EQ(plan->edges.size(), 1u);
  EXPECT_EQ(plan->edges[0].group, "map@b");
  plan->at("map@b").apply = false;
  CompilationOptions options;
  options.given_plan = plan;
  const Compilation c = lowered_model(two, options);
  EXPECT_EQ(c.plan.edges[0].group, "");
  EXPECT_EQ(c.plan.edges[0].executed, kTwoLaunches);
  EXPECT_FALSE(c.plan.edges[0].decline.code.empty());
}

TEST(Ledger, EveryReasonOfTheTableIsThereOnce) {
  for (const Reason& reason : reasons()) EXPECT_EQ(find_reason(reason.code), &reason) << reason.code;
}

TEST(Ledger, NamesOfLaunchesAreUnique) {
  CompilationOptions options;
  options.fused = false;
  const Compilation c = lowered_model(
      "graph (%x: f32[1,8,8,8]) {\n %w = const rand<1> : f32[8,8,3,3]\n %a = conv(%x, %w) @\"s\"\n"
      "%y = conv(%a, %w) @\"s\"\n return %y }",
      options);
  ASSERT_EQ(c.program.launches.size(), 2u);
  EXPECT_EQ(c.program.launches[0].name, "conv__s");
  EXPECT_EQ(c.program.launches[1].name, "conv__s_2");
}

}  // namespace
}  // namespace opfuse
