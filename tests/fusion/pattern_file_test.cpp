// Patterns of users: topologies and conditions as text, their errors with line and column, files with examples, and
// their place before the catalogue.
#include "fusion/user/pattern_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "fusion/prepared.hpp"
#include "fusion/user/pattern_text.hpp"
#include "opfuse/error.hpp"

namespace opfuse {
namespace {

using testing::HasSubstr;

const TextPlace kHere{"my.toml", 3, 10};

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.diagnostic().message + " | " + error.diagnostic().hint;
  }
  return "no error";
}

std::string topology_error(const std::string& text) {
  return error_of([&] { parse_topology(text, kHere); });
}

TEST(PatternText, WhatPatternsPrintParsesBackToTheSameText) {
  for (const char* text :
       {"conv:conv [bn:batch_norm] act:{relu|sigmoid}", "x:any relu", "tensor linear:gemm(w:constant, [b:constant])",
        "add:add(tensor)*", "(r:relu){0,3} clip", "{relu | clip sigmoid}", "x:any fork(a:relu, -) sum:add",
        "any mul(6)", "scaled:mul(-0.5)", "{{relu|clip} | conv batch_norm}", "{relu* | clip}", "{relu|clip}*"})
    EXPECT_EQ(parse_topology(text, kHere).text(), text);
  EXPECT_EQ(parse_topology("conv -> [batch_norm] -- relu >> clip", kHere).text(), "conv [batch_norm] relu clip");
  EXPECT_EQ(parse_topology("conv_block", kHere).text(), conv_block().text());
  EXPECT_EQ(parse_topology("{{relu|clip} | conv}", kHere).text(), "{relu|clip|conv}");
  EXPECT_EQ(parse_topology("(relu){ 0, 3 }", kHere).text(), "(relu){0,3}");
}

TEST(PatternText, TheCatalogueParsesBackToItsText) {
  const std::regex conditions("<[^>]*>");  // of nodes: they print, but are code
  for (const FusionPattern& p : fusion_patterns()) {
    const std::string text = std::regex_replace(p.topology.text(), conditions, "");
    EXPECT_EQ(parse_topology(text, kHere).text(), text) << p.name;
  }
}

TEST(PatternText, ErrorsNameLineColumnAndWhatWasMeant) {
  EXPECT_THAT(topology_error("conv -> relv"), HasSubstr("my.toml:3:18: there is no operator \"relv\" | "));
  EXPECT_THAT(topology_error("conv -> relv"), HasSubstr("relu"));
  EXPECT_THAT(topology_error("conv ["), HasSubstr("my.toml:3:16: expected an element"));
  EXPECT_THAT(topology_error("[conv"), HasSubstr("expected ']'"));
  EXPECT_THAT(topology_error("(relu){2,1}"), HasSubstr("expected how often"));
  EXPECT_THAT(topology_error("(relu){0,1000000}"), HasSubstr("at most 64"));
  EXPECT_THAT(topology_error("(relu){0.5,2.7}"), HasSubstr("my.toml:3:17: expected how often"));
  EXPECT_THAT(topology_error("(relu){0 3}"), HasSubstr("expected how often"));
  EXPECT_THAT(topology_error("mul(0x10)"), HasSubstr("my.toml:3:15: there is no operator \"x10\""));
  EXPECT_THAT(topology_error("a:{relu | conv relu}"), HasSubstr("only a choice of operators"));
  EXPECT_THAT(topology_error("fork(relu, -)"), HasSubstr("a fork is followed by"));
  EXPECT_THAT(topology_error("add(1, 2, 3, 4)"), HasSubstr("at most three"));
  EXPECT_THAT(topology_error("\nconv ?"), HasSubstr("my.toml:4:6"));
}

std::string verdict_on(const std::string& graph_text, const std::string& pattern, const std::string& condition) {
  const Pattern topology = parse_topology(pattern, kHere);
  const Graph graph = parse_graph(graph_text, ops());
  const MatchPredicate predicate = parse_condition(condition, topology, kHere);
  const Matcher matcher(graph);
  const MatchResult r = matcher.match(topology, graph.nodes().back(), {});
  if (!r) return "no match";
  const auto decline = predicate.test(*r.match);
  return decline ? decline->code + ": " + decline->message : "holds";
}

std::string verdict(const std::string& condition) {
  return verdict_on(R"(graph (%x: f32[n,16,8,8]) {
    %w = const rand<1> : f32[4,8,3,3] %c = conv(%x, %w) {group = 2, strides = [1,2]} %y = leaky_relu(%c) {alpha = 0.25}
    return %y })",
                    "conv:conv(w:constant) [bn:batch_norm] act:{relu|leaky_relu}", condition);
}

TEST(Condition, ComputesOverShapesAttributesTypesAndConstants) {
  for (const char* holds :
       {"true", "conv.in_channels % 16 == 0 and conv.group == 2", "conv.in_channels / conv.group == 8",
        "conv.kernel[0] == 3 and conv.kernel[1] == 3", "conv.strides[1] == 2", "conv.strides[-1] > conv.strides[0]",
        "act.alpha < 0.5", "act.op == \"leaky_relu\"", "act.op != 'relu'", "w.dtype == \"f32\"", "w.constant",
        "w.elements == 4 * 8 * 3 * 3", "not has(bn)", "not has(bn) or bn.epsilon > 0",
        "conv.rank == 4 and conv.shape[1] == 4", "-conv.group + 3 == 1", "(1 + 2) * 3 >= 9", "conv.shape[1] <= 4"})
    EXPECT_EQ(verdict(holds), "holds") << holds;
}

TEST(Condition, ARefusalShowsTheValuesItRead) {
  EXPECT_EQ(verdict("conv.in_channels % 32 == 0"),
            "condition: conv.in_channels % 32 == 0 does not hold: conv.in_channels is 16; pad conv.in_channels by 16");
  EXPECT_THAT(verdict("has(bn) and conv.group == 2"), HasSubstr("bn is absent"));
  EXPECT_THAT(verdict("conv.shape[0] == 1"), HasSubstr("unknown_value: conv.shape[0] == 1 cannot be decided"));
  EXPECT_THAT(verdict("bn.epsilon > 0"), HasSubstr("unknown_value"));
  EXPECT_THAT(verdict("conv.group % 0 == 0"), HasSubstr("unknown_value"));
}

TEST(Condition, ListsAreComparedElementByElement) {
  EXPECT_EQ(verdict("conv.kernel != conv.strides"), "holds");
  EXPECT_EQ(verdict("conv.kernel == conv.kernel"), "holds");
  EXPECT_THAT(verdict("conv.kernel == conv.strides"), HasSubstr("condition: "));
  EXPECT_THAT(verdict("conv.shape == act.shape"), HasSubstr("unknown_value"));
  EXPECT_THAT(verdict("conv.shape != act.shape"), HasSubstr("unknown_value"));
}

TEST(Condition, ChannelsAndFeaturesFollowTheOperatorsOwnLayout) {
  const std::string transposed = R"(graph (%x: f32[1,8,4,4]) {
    %w = const rand<1> : f32[8,3,2,2] %y = conv_transpose(%x, %w) {group = 2} return %y })";
  EXPECT_EQ(verdict_on(transposed, "up:conv_transpose", "up.in_channels == 8 and up.out_channels == 6"), "holds");
  const std::string product = R"(graph (%x: f32[5,7]) {
    %w = const rand<1> : f32[5,3] %y = gemm(%x, %w) {transA = true} return %y })";
  EXPECT_EQ(verdict_on(product, "fc:gemm", "fc.in_features == 5 and fc.out_features == 3"), "holds");
}

TEST(Condition, ErrorsNameLineAndColumn) {
  EXPECT_THAT(error_of([] { verdict("conv.in_chanels == 3"); }), HasSubstr("my.toml:3:15: conv:conv"));
  EXPECT_THAT(error_of([] { verdict("conv.in_chanels == 3"); }), HasSubstr("in_channels"));
  EXPECT_THAT(error_of([] { verdict("conf.group == 3"); }),
              HasSubstr("my.toml:3:10: the topology has no binding \"conf\""));
  EXPECT_THAT(error_of([] { verdict("conv.group == "); }), HasSubstr("expected a number"));
  EXPECT_THAT(error_of([] { verdict("conv.group == 1 conv.rank"); }), HasSubstr("my.toml:3:26"));
  EXPECT_THAT(error_of([] { verdict("(conv.group == 1"); }), HasSubstr("expected ')'"));
  EXPECT_THAT(error_of([] { verdict("act.op == 'relu"); }), HasSubstr("no closing quote"));
}

TEST(PatternFile, ReadsTheExampleAndItsExamplesHold) {
  const std::string path = std::string(OPFUSE_SOURCE_DIR) + "/examples/patterns/gate.toml";
  const std::vector<UserPattern> users = read_patterns(path);
  ASSERT_EQ(users.size(), 2u);
  EXPECT_EQ(users[0].pattern.module, "FusedConvGate");
  EXPECT_EQ(users[0].pattern.points.size(), 1u);
  for (const UserPattern& user : users) {
    EXPECT_FALSE(user.examples.empty());
    for (const PatternExample& e : user.examples) EXPECT_EQ(check_example(user.pattern, e), "") << e.graph;
  }
}

TEST(PatternFile, AWrongExampleIsTold) {
  const UserPattern user = read_patterns(std::string(OPFUSE_SOURCE_DIR) + "/examples/patterns/gate.toml")[0];
  EXPECT_THAT(check_example(user.pattern, {user.examples[1].graph, true}), HasSubstr("conv.in_channels is 3"));
  EXPECT_THAT(check_example(user.pattern, {user.examples[0].graph, false}), HasSubstr("it fires"));
}

TEST(PatternFile, AUsersPatternWinsTheOverlap) {
  const std::vector<FusionPattern> patterns =
      patterns_with({std::string(OPFUSE_SOURCE_DIR) + "/examples/patterns/gate.toml"});
  PlanOptions options;
  options.patterns = &patterns;
  const Graph graph = prepared_text(R"(graph (%x: f32[1,8,8,8]) {
    %d = const rand<1> : f32[8,1,3,3] %w = const rand<2> : f32[8,8,3,3]
    %c = conv(%x, %d) {group = 8} %r = relu(%c) %e = conv(%r, %w) %y = relu(%e) return %y })");
  EXPECT_EQ(make_plan(graph, options).module_counts(),
            (std::map<std::string, int>{{"FusedDepthwiseConv", 1}, {"FusedConvBNReLU", 1}}));
  const QdqSummary points = qdq_summary(make_plan(graph, options));
  EXPECT_EQ(points.declared, 1u) << "the depthwise convolution has none";
}

TEST(PatternFile, ErrorsNameFileLineAndColumn) {
  const auto error = [](const std::string& toml) { return error_of([&] { parse_patterns(toml, "p.toml"); }); };
  EXPECT_THAT(error("[[pattern]]\nname = \"A\"\ntopology = \"c:conv -> relv\"\n"),
              HasSubstr("p.toml:3:23: there is no operator"));
  EXPECT_THAT(error("[[pattern]]\nname = \"A\"\ntopology = \"c:conv\"\nwhere = [\"c.grup == 1\"]\n"),
              HasSubstr("p.toml:4:13"));
  EXPECT_THAT(error("[[pattern]]\nnam = \"A\"\n"), HasSubstr("p.toml:2:7: \"nam\" is not a key"));
  EXPECT_THAT(error("[[pattern]]\nname = 3\n"), HasSubstr("name must be a text"));
  EXPECT_THAT(error("[[pattern]]\nname = \"A\"\n"), HasSubstr("needs a name and a topology"));
  EXPECT_THAT(error("[[pattern]]\nname = \"A\"\ntopology = \"c:conv\"\npoints = { INPUT = \"d\" }\n"),
              HasSubstr("no binding \"d\""));
  EXPECT_THAT(error("[[pattern]\n"), HasSubstr("p.toml:1:"));
  EXPECT_THAT(error(""), HasSubstr("no [[pattern]]"));
  EXPECT_THAT(error("pattern = 3"), HasSubstr("expected [[pattern]] tables"));
  EXPECT_THAT(error_of([] { read_patterns("/nonexistent.toml"); }), HasSubstr("cannot open"));
}

TEST(PatternFile, APriorityOutOfRangeIsRefused) {
  const auto error = [](const std::string& priority) {
    return error_of([&] {
      parse_patterns("[[pattern]]\nname = \"A\"\ntopology = \"c:conv\"\npriority = " + priority + "\n", "p.toml");
    });
  };
  EXPECT_THAT(error("true"), HasSubstr("p.toml:4:12: priority must be a whole number"));
  EXPECT_THAT(error("1001"), HasSubstr("p.toml:4:12: priority 1001 is outside [-1000, 1000]"));
  EXPECT_THAT(error("-9223372036854775807"), HasSubstr("outside"));
  EXPECT_EQ(error("-1000"), "no error");
}

PatternText own(const std::string& name, const std::string& module = "") {
  PatternText text;
  text.name = name;
  text.module = module;
  text.topology = {"c:conv", kHere};
  return text;
}

TEST(PatternFile, AModuleWithTheSeparatorOfLabelsIsRefused) {
  for (const PatternText& text : {own("A", "Mine__A"), own("A_"), own("A__B")})
    EXPECT_THAT(error_of([&] { make_pattern(text); }), HasSubstr("separates the module from the instance"));
  EXPECT_EQ(make_pattern(own("A_B")).module, "FusedA_B");
}

TEST(PatternFile, TwoPatternsOfOneNameAreRefusedWhereverTheyComeFrom) {
  const std::string gate = std::string(OPFUSE_SOURCE_DIR) + "/examples/patterns/gate.toml";
  const std::string name = read_patterns(gate)[0].pattern.name;
  EXPECT_THAT(error_of([&] { patterns_with({}, {own("A"), own("A")}); }), HasSubstr("there are two patterns \"A\""));
  EXPECT_THAT(error_of([&] { patterns_with({}, {own("ConvBN")}); }), HasSubstr("from the catalogue | give this one"));
  EXPECT_THAT(error_of([&] { patterns_with({gate}, {own(name)}); }), HasSubstr("from PlanRequest::patterns"));
  try {
    patterns_with({gate, gate});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().file, gate);
    EXPECT_EQ(error.diagnostic().name, "bad_option");
  }
  EXPECT_EQ(patterns_with({gate}, {own("A")}).size(), fusion_patterns().size() + 3);
}

TEST(PatternFile, ErrorsOfAFileCarryItsPath) {
  const std::string path = testing::TempDir() + "wrong_pattern.toml";
  std::ofstream(path) << "[[pattern]]\nnam = 3\n";
  try {
    read_patterns(path);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostic().file, path);
    EXPECT_EQ(error.diagnostic().name, "bad_file");
  }
}

}  // namespace
}  // namespace opfuse
