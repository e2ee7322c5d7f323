// Patterns: printing, matching, and what they say when they do not match.
#include "match/matcher.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "match/activation.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

Graph graph_of(const std::string& body, const std::string& results = "%y") {
  return parse_graph("graph (%x: f32[1,4,8,8], %z: f32[1,4,8,8]) {\n %w = const rand<1> : f32[4,4,3,3]\n" + body +
                         "\n return " + results + "\n}",
                     ops());
}

Pattern conv_act() { return op("conv", "conv") >> maybe(op("batch_norm", "bn")) >> activation("act"); }

TEST(Pattern, PrintsItsTopology) {
  EXPECT_EQ((op("conv", "conv") >> maybe(op("batch_norm", "bn")) >> any_op({"relu", "gelu"}, "act")).text(),
            "conv:conv [bn:batch_norm] act:{relu|gelu}");
  EXPECT_EQ((any("x") >> op("sigmoid") >> op("mul").with(any("x"))).text(), "x:any sigmoid mul(x:any)");
  EXPECT_EQ(repeat(op("relu"), 1, 3).text(), "(relu){1,3}");
  EXPECT_EQ((fork({op("relu"), pass_through()}) >> join(op("add", "sum"))).text(), "fork(relu, -) sum:add");
}

TEST(Pattern, CountsItsFewestNodes) {
  EXPECT_EQ(conv_act().min_nodes(), 2u);
  EXPECT_EQ(one_of({op("a") >> op("b"), op("c")}).min_nodes(), 1u);
}

TEST(Matcher, BindsNodesAndListsReads) {
  const Graph g = graph_of("%c = conv(%x, %w) {pads=[1,1,1,1]}\n %y = relu(%c)");
  const MatchResult r = Matcher(g).match(conv_act(), g.nodes().back());
  ASSERT_TRUE(r);
  EXPECT_EQ(r.match->node("conv"), g.nodes().front());
  EXPECT_FALSE(r.match->has("bn"));
  EXPECT_EQ(r.match->nodes, g.nodes());
  ASSERT_EQ(r.match->reads.size(), 2u);
  EXPECT_EQ(r.match->reads[0]->name, "x");
  EXPECT_EQ(r.match->reads[1]->name, "w");
}

TEST(Matcher, SparesAValueThatIsReadTwiceAndNamesTheReaders) {
  const Graph g = graph_of("%c = conv(%x, %w) {pads=[1,1,1,1]}\n %r = relu(%c) @\"R\"\n %y = add(%c, %r) @\"A\"");
  const MatchResult r = Matcher(g).match(conv_act(), g.nodes()[1]);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.partial.decline.code, "multi_consumer");
  EXPECT_NE(r.partial.decline.message.find("also read by add \"A\""), std::string::npos) << r.partial.decline.message;
  EXPECT_EQ(r.partial.matched, 3u);  // both nodes fitted, the reader did not
}

TEST(Matcher, SparesAnInteriorGraphOutput) {
  const Graph g = graph_of("%c = conv(%x, %w) {pads=[1,1,1,1]}\n %y = relu(%c)", "%y, %c");
  const MatchResult r = Matcher(g).match(conv_act(), g.nodes().back());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.partial.decline.code, "graph_output");
}

TEST(Matcher, SharedElementsKeepTheirValueAsAnExtraResult) {
  const Graph g = graph_of("%c = conv(%x, %w) {pads=[1,1,1,1]}\n %y = relu(%c)", "%y, %c");
  const MatchResult r = Matcher(g).match(op("conv").shared() >> op("relu"), g.nodes().back());
  ASSERT_TRUE(r);
  ASSERT_EQ(r.match->results.size(), 2u);
  EXPECT_EQ(r.match->results[1]->name, "c");
}

TEST(Matcher, TakesSideOperandsInEitherOrderWhenTheOperatorCommutes) {
  const Pattern p = op("relu", "r") >> op("add").with(tensor("side"));
  for (const char* text : {"%r = relu(%x)\n %y = add(%r, %z)", "%r = relu(%x)\n %y = add(%z, %r)"}) {
    const Graph g = graph_of(text);
    const MatchResult r = Matcher(g).match(p, g.nodes().back());
    ASSERT_TRUE(r) << text;
    EXPECT_EQ(r.match->value("side")->name, "z");
  }
  const Graph sub = graph_of("%r = relu(%x)\n %y = sub(%z, %r)");
  EXPECT_FALSE(Matcher(sub).match(op("relu") >> op("sub").with(tensor()), sub.nodes().back()));
}

TEST(Matcher, PrefersTheDeeperOperandOfAnAdd) {
  const Graph g = graph_of(
      "%a = conv(%x, %w) {pads=[1,1,1,1]}\n %b = relu(%a)\n %c = conv(%b, %w) {pads=[1,1,1,1]} @\"deep\"\n"
      "%d = conv(%x, %w) {pads=[1,1,1,1]} @\"shallow\"\n %y = add(%d, %c)");
  const MatchResult r = Matcher(g).match(op("conv", "conv") >> op("add").with(tensor("residual")), g.nodes().back());
  ASSERT_TRUE(r);
  EXPECT_EQ(r.match->node("conv")->name(), "deep");
  EXPECT_EQ(r.match->value("residual")->name, "d");
  ASSERT_EQ(r.match->notes.size(), 1u);
}

TEST(Matcher, ForkAndJoinMatchADiamondWithAnEmptyBranch) {
  const Pattern p = any("x") >> fork({op("sigmoid", "s"), pass_through()}) >> join(op("mul"));
  const Graph yes = graph_of("%s = sigmoid(%x)\n %y = mul(%x, %s)");
  EXPECT_TRUE(Matcher(yes).match(p, yes.nodes().back()));
  const Graph no = graph_of("%s = sigmoid(%x)\n %y = mul(%z, %s)");
  const MatchResult r = Matcher(no).match(p, no.nodes().back());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.partial.decline.code, "different_sources");
}

TEST(Matcher, TakesResultsOfOneNodeByTheirNumber) {
  const std::string head = "graph (%x: f32[2,8]) { %a, %b = split(%x) {axis = 1, num_outputs = 2} ";
  const Pattern pattern = any("x") >> op("split", "cut").result(1) >> op("neg") >>
                          op("concat", "y").with(any("x") >> op("split", "cut").result(0));
  const auto found = [&](const std::string& rest) {
    const Graph graph = parse_graph(head + rest, ops());
    return Matcher(graph).match_all(pattern).size();
  };
  EXPECT_EQ(found("%n = neg(%b) %y = concat(%n, %a) {axis = 1} return %y }"), 1u);
  EXPECT_EQ(found("%n = neg(%a) %y = concat(%n, %b) {axis = 1} return %y }"), 0u);      // the other way round
  EXPECT_EQ(found("%n = neg(%b) %y = concat(%n, %a) {axis = 1} return %y, %a }"), 0u);  // a half must be stored
  EXPECT_EQ(found("%n = neg(%b) %y = concat(%n, %a) {axis = 1} %z = relu(%a) return %y, %z }"), 0u);  // read outside
  EXPECT_EQ(pattern.text(), "x:any cut:split.1 neg y:concat(x:any cut:split.0)");
}

TEST(Matcher, RepeatsAreGreedyAndBacktrack) {
  const Graph g = graph_of("%a = relu(%x)\n %b = relu(%a)\n %y = relu(%b)");
  const MatchResult r = Matcher(g).match(op("relu", "first") >> repeat(op("relu"), 0, 8), g.nodes().back());
  ASSERT_TRUE(r);
  EXPECT_EQ(r.match->nodes.size(), 3u);
  EXPECT_EQ(r.match->node("first"), g.nodes().front());
  EXPECT_FALSE(Matcher(g).match(repeat(op("relu"), 4, 8), g.nodes().back()));
}

TEST(Matcher, RefusesAConstantByValueWithItsTolerance) {
  const Graph g = graph_of("%k = const splat<1.4> : f32[]\n %d = div(%x, %k) @\"Div_90\"\n %y = erf(%d)");
  const MatchResult r = Matcher(g).match(op("div").with(scalar(1.41421356)) >> op("erf"), g.nodes().back());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.partial.decline.code, "constant_mismatch");
  EXPECT_EQ(r.partial.decline.message, "expected constant 1.41421 (+-0.00014) at Div_90 input 1, found constant 1.4");
}

TEST(Matcher, OneNameMeansOneValue) {
  const Pattern p = any("x") >> op("relu") >> op("add").with(any("x"));
  const Graph yes = graph_of("%r = relu(%x)\n %y = add(%r, %x)"), no = graph_of("%r = relu(%x)\n %y = add(%r, %z)");
  EXPECT_TRUE(Matcher(yes).match(p, yes.nodes().back()));
  const MatchResult r = Matcher(no).match(p, no.nodes().back());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.partial.decline.code, "binding_mismatch");
}

TEST(Matcher, AnOptionalConstantThatIsComputedDoesNotCountAsAbsent) {
  const Graph g = parse_graph(
      "graph (%x: f32[2,4], %b: f32[3]) {\n %w = const rand<1> : f32[4,3]\n %y = gemm(%x, %w, %b)\n return %y\n}",
      ops());
  EXPECT_FALSE(Matcher(g).match(op("gemm").with(constant(), maybe(constant())), g.nodes().back()));
}

TEST(Matcher, ExplainsWhatItExpectedAndFound) {
  const Graph g = graph_of("%c = max_pool(%x) {kernel_shape=[2,2]} @\"pool\"\n %y = relu(%c) @\"act\"");
  const MatchResult r = Matcher(g).match(conv_act(), g.nodes().back());
  const std::string text = explain(conv_act(), r);
  EXPECT_NE(text.find("relu \"act\""), std::string::npos) << text;
  EXPECT_NE(text.find("expected conv:conv, found max_pool \"pool\""), std::string::npos) << text;
  EXPECT_NE(text.find("matched 1 of 2 nodes"), std::string::npos) << text;
}

/// Nodes tried by a pattern that finds no convolution behind `levels` of "%{i+1} = f(%{i})".
size_t tried_over(const std::string& level, int levels) {
  std::string body, from = "%x";
  for (int i = 0; i < levels; ++i) {
    std::string line = level, to = fmt::format("%v{}", i);
    for (size_t at; (at = line.find('$')) != std::string::npos;) line.replace(at, 1, from);
    for (size_t at; (at = line.find('#')) != std::string::npos;) line.replace(at, 1, fmt::format("{}", i));
    body += line + "\n";
    from = to;
  }
  const Graph g = graph_of(body, from);
  const Matcher matcher(g);
  const Pattern pattern = op("conv") >> repeat(any_op({"add", "relu", "tanh"}), 1, 16);
  EXPECT_FALSE(matcher.match(pattern, g.nodes().back()));
  return matcher.tried();
}

// A repetition that may go on through either operand is tried once for each value, not once for each way to it.
TEST(Matcher, TriesARepetitionOnceForEachValue) {
  EXPECT_LE(tried_over(" %v# = add($, $)", 20), 60u);                                       // 2^16 ways
  EXPECT_LE(tried_over(" %a# = relu($)\n %b# = tanh($)\n %v# = add(%a#, %b#)", 20), 200u);  // 2^8
  EXPECT_LE(tried_over(" %a# = relu($)\n %b# = tanh(%a#)\n %v# = add($, %b#)", 20), 500u);
}

TEST(Matcher, WritesTextsForThoseWhoAskForThem) {
  const Graph g = graph_of("%c = max_pool(%x) {kernel_shape=[2,2]} @\"pool\"\n %y = relu(%c) @\"act\"");
  const Matcher matcher(g);
  const PartialMatch codes = matcher.match(conv_act(), g.nodes().back(), {}, Detail::codes).partial;
  const PartialMatch texts = matcher.match(conv_act(), g.nodes().back()).partial;
  EXPECT_EQ(codes.decline.code, texts.decline.code);
  EXPECT_EQ(codes.matched, texts.matched);
  EXPECT_EQ(codes.of, texts.of);
  EXPECT_EQ(codes.at, texts.at);
  EXPECT_EQ(codes.decline.message, "");
  EXPECT_TRUE(codes.trace.empty());
}

TEST(Activation, RefusesParametersThatMakeAnotherFunction) {
  const Graph g = graph_of("%a = clip(%x) {min=-1, max=1}\n %b = hard_sigmoid(%a)\n %y = silu(%b) {alpha=1.702}");
  for (const Node* node : g.nodes()) EXPECT_EQ(activation_name(*node), "") << node->name();
  const MatchResult r = Matcher(g).match(activation(), g.nodes()[0]);
  EXPECT_EQ(r.partial.decline.code, "constant_mismatch");
  EXPECT_NE(r.partial.decline.message.find("expected limits 0 and 6"), std::string::npos) << r.partial.decline.message;
}

}  // namespace
}  // namespace opfuse
