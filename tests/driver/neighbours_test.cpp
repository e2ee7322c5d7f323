// Neighbours that become one launch because the cost model says so, those that stay apart, and control over both. Every
// graph runs on every CPU target of this machine against the interpreter.
#include <fmt/format.h>

#include "driver/runs_everywhere.hpp"
#include "opfuse/error.hpp"

namespace opfuse {
namespace {

using test::expect_runs;
using ::testing::HasSubstr;

const TargetInfo kTarget = parse_target("cpu:avx512");

std::string image(const std::string& body, const std::string& results = "%y") {
  return "graph (%x: f32[1,16,32,32], %z: f32[1,16,32,32]) {\n" + body + "\n return " + results + "\n}";
}

FusionPlan plan_of(const std::string& text, const PlanRequest& request = {}) {
  Graph graph = parse_graph(text, ops());
  prepare(graph, {}, nullptr);
  return plan_graph(graph, kTarget, request);
}

const EdgeVerdict& edge_of(const FusionPlan& plan, const std::string& producer, const std::string& consumer) {
  for (const EdgeVerdict& e : plan.edges)
    if (e.producer == producer && e.consumer == consumer) return e;
  throw std::runtime_error("no edge " + producer + " -> " + consumer);
}

/// One case of a rule: the graph is so many launches.
struct Case {
  const char* name;
  std::string text;
  size_t launches;
};

class Launches : public ::testing::TestWithParam<Case> {};

TEST_P(Launches, AreAsManyAndCompute) {
  const Program program = expect_runs(GetParam().text);
  EXPECT_EQ(program.launches.size(), GetParam().launches) << print(program);
}

const std::string kRows = "graph (%x: f32[64,256]) {\n %k = const dense<-1> : i64[1]\n";

const std::string kTurnedPair =
    "%s = const splat<0.05> : f32[]\n %o = const dense<0> : i8[]\n %t = transpose(%x) {perm=[0,1,3,2]}\n"
    "%q = quantize_linear(%t, %s, %o)\n %d = dequantize_linear(%q, %s, %o)\n";

std::vector<Case> cases() {
  return {
      // movements grow into readers and writers
      {"transpose", image("%a = relu(%x)\n %t = transpose(%a) {perm=[0,1,3,2]}\n %y = add(%t, %z)"), 1},
      {"transpose_and_a_pair_that_rounds", image(kTurnedPair + "%y = mul(%d, %z)"), 1},
      {"transpose_and_a_pair_in_front_of_a_sum_of_codes",  // codes are stored for the product
       image(kTurnedPair + "%v = const rand<2> : f32[16,16,3,3]\n %k = quantize_linear(%v, %s, %o)\n"
                           "%u = dequantize_linear(%k, %s, %o)\n %y = conv(%d, %u) {pads=[1,1,1,1]}"),
       3},
      {"transpose_and_a_pair_whose_codes_are_read",
       image(kTurnedPair + "%y = mul(%d, %z)\n %e = cast(%q) {to = i32}", "%y, %e"), 4},
      {"reshape_between",
       "graph (%x: f32[1,16,32,32], %z: f32[16,1024]) { %a = relu(%x) %s = const dense<16,1024> : i64[2]\n"
       "%b = reshape(%a, %s) %y = mul(%b, %z) return %y }",
       1},
      {"concat_between", image("%a = relu(%x)\n %b = abs(%z)\n %c = concat(%a, %b) {axis=1}\n %y = neg(%c)"), 1},
      {"functions_of_parts",  // all lanes are in one part: only its function is computed
       image("%a = tanh(%x)\n %b = sigmoid(%z)\n %c = concat(%a, %b) {axis=1}\n %y = exp(%c)"), 1},
      {"functions_of_three_parts",
       image("%a = tanh(%x)\n %b = sigmoid(%z)\n %d = exp(%z)\n %c = concat(%a, %b, %d) {axis=2}\n %y = neg(%c)"), 1},
      {"functions_of_parts_of_a_vector",  // lanes are in both: each function would be computed for the whole
       "graph (%x: f32[512,24], %z: f32[512,40]) { %a = tanh(%x) %b = sigmoid(%z) %c = concat(%a, %b) {axis=1}\n"
       "%y = exp(%c) return %y }",
       3},
      {"concat_of_a_concat",  // halves of a part of the heads are rotated: each read has its own border
       "graph (%a: f32[2,3,4], %b: f32[2,3,4], %c: f32[2,1,4], %d: f32[2,3,8]) {\n"
       "%e = mul(%a, %c) %f = mul(%b, %c) %g = sub(%e, %f) %h = add(%e, %f)\n"
       "%i = concat(%g, %h) {axis=2} %y = concat(%i, %d) {axis=2} return %y }",
       1},
      {"concat_of_a_scaled_concat",
       "graph (%a: f32[2,3,4], %b: f32[2,3,4], %c: f32[2,1,4], %d: f32[2,3,8]) {\n"
       "%e = mul(%a, %c) %i = concat(%e, %b) {axis=2} %j = mul(%i, %d) %y = concat(%j, %d) {axis=2} return %y }",
       1},
      {"roll_back_of_windows_and_sum",
       "graph (%w: f32[16,49,96], %x: f32[1,28,28,96]) { %k = const dense<2> : i64[1] %z = const dense<0> : i64[1]\n"
       "%a = const dense<25> : i64[1] %e = const dense<100> : i64[1] %h = const dense<1> : i64[1]\n"
       "%s = const dense<1,4,4,7,7,96> : i64[6] %m = const dense<1,28,28,96> : i64[4]\n"
       "%b = reshape(%w, %s) %c = transpose(%b) {perm=[0,1,3,2,4,5]} %d = reshape(%c, %m)\n"
       "%f = slice(%d, %a, %e, %h) %g = slice(%d, %z, %a, %h) %i = concat(%f, %g) {axis=1}\n"
       "%j = slice(%i, %a, %e, %k) %l = slice(%i, %z, %a, %k) %n = concat(%j, %l) {axis=2}\n"
       "%y = add(%x, %n) return %y }",
       1},
      {"pad", image("%p = const dense<0,0,1,1,0,0,1,1> : i64[8]\n %a = pad(%x, %p)\n %y = relu(%a)"), 1},
      {"depth_to_space", image("%a = depth_to_space(%x) {blocksize=2}\n %y = relu(%a)"), 1},
      {"pad_into_pool",
       image("%p = const dense<0,0,1,1,0,0,1,1> : i64[8]\n %a = pad(%x, %p)\n"
             "%y = average_pool(%a) {kernel_shape=[3,3]}"),
       1},
      // broadcasts grow, a sum that is needed for each element of a large result does not
      {"broadcast", "graph (%x: f32[1,16,1,1], %z: f32[1,16,32,32]) { %a = relu(%x) %y = add(%a, %z) return %y }", 1},
      // several results, siblings
      {"stored_and_read", image("%s = add(%x, %z)\n %t = sigmoid(%s)", "%s, %t"), 1},
      {"siblings", image("%a = relu(%x)\n %b = sigmoid(%x)", "%a, %b"), 1},
      {"prefix_of_two", image("%p = relu(%x)\n %a = exp(%p)\n %b = sigmoid(%p)", "%a, %b"), 1},
      {"reductions_of_one_row", kRows + "%a = reduce_sum(%x, %k)\n %b = reduce_max(%x, %k)\n return %a, %b }", 1},
      {"sum_and_norm",
       "graph (%x: f32[1,64,256], %z: f32[1,64,256]) { %g = const rand<1> : f32[256] %b = const rand<2> : f32[256]\n"
       "%s = add(%x, %z) %l = layer_norm(%s, %g, %b) {axis=-1} return %s, %l }",
       1},
      // a function that the row is summed of rests where the result will lie, as softmax's exp does
      {"function_of_a_row_and_its_sum",
       kRows + "%m = reduce_max(%x, %k)\n %d = sub(%x, %m)\n %e = tanh(%d)\n %s = reduce_sum(%e, %k)\n"
               "%y = div(%e, %s)\n return %y }",
       1},
      // what would be computed again is not
      {"function_in_front_of_a_running_sum",  // which reads each element for all that follow
       "graph (%x: f32[64,256]) { %k = const dense<1> : i64[] %a = tanh(%x) %y = cum_sum(%a, %k) return %y }", 2},
      {"function_in_front_of_a_mean",
       "graph (%x: f32[64,256]) { %k = const dense<1> : i64[1] %a = tanh(%x) %y = reduce_mean(%a, %k) return %y }", 1},
      // through views
      {"two_slices_of_one_value",
       "graph (%x: f32[8,64]) { %s = const dense<0> : i64[1] %m = const dense<32> : i64[1] %e = const dense<64> : "
       "i64[1]\n"
       "%k = const dense<1> : i64[1] %r = relu(%x)\n %a = slice(%r, %s, %m, %k) %b = slice(%r, %m, %e, %k)\n"
       "%y = mul(%a, %b) return %y }",
       1},
      {"both_results_of_a_split",
       "graph (%x: f32[8,64], %z: f32[8,64]) { %r = add(%x, %z)\n %p, %q = split(%r) {axis=1, num_outputs=2}\n %s = "
       "sigmoid(%q)\n"
       "%y = mul(%p, %s) return %y }",
       1},
      {"a_slice_that_others_read",
       "graph (%x: f32[8,64]) { %s = const dense<0> : i64[1] %m = const dense<32> : i64[1] %k = const dense<1> : "
       "i64[1]\n"
       "%r = relu(%x)\n %a = slice(%r, %s, %m, %k) %n = transpose(%a) {perm=[1,0]}\n %w = const rand<1> : f32[32,4]\n"
       "%v = const rand<2> : f32[8,4]\n %y = matmul(%a, %w) %z = matmul(%n, %v) return %y, %z }",
       3},
      // all results are wanted, and what is computed stays the same
      {"maps_whose_values_are_results",
       "graph (%x: f32[16,64]) { %a = relu(%x) %b = sigmoid(%a) %c = tanh(%b)\n %d = add(%a, %c) return %a, %b, %c, %d "
       "}",
       1},
      // prologues by how often they are computed
      {"window_that_reads_once", image("%a = relu(%x)\n %y = max_pool(%a) {kernel_shape=[2,2], strides=[2,2]}"), 1},
      {"product_that_reads_often",
       "graph (%x: f32[1,64,32,32]) { %w = const rand<1> : f32[256,64,1,1] %a = tanh(%x) %y = conv(%a, %w) return %y }",
       2},
  };
}

INSTANTIATE_TEST_SUITE_P(Neighbours, Launches, ::testing::ValuesIn(cases()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Neighbours, ARefusedEdgeHasBothPricesAndNamesItsEnds) {
  const FusionPlan plan = plan_of(
      "graph (%x: f32[1,64,32,32]) { %w = const rand<1> : f32[256,64,1,1] %a = tanh(%x) @\"act\"\n"
      "%y = conv(%a, %w) @\"conv\" return %y }");
  const EdgeVerdict& edge = edge_of(plan, "act", "conv");
  EXPECT_EQ(edge.decline.code, "slower");
  EXPECT_THAT(edge.decline.message, testing::AllOf(HasSubstr("\"act\""), HasSubstr("\"conv\"")));
  ASSERT_TRUE(edge.price && edge.price->joined);
  EXPECT_GT(edge.price->joined->microseconds, edge.price->apart.microseconds);
  EXPECT_LT(edge.price->joined->bytes, edge.price->apart.bytes);
}

TEST(Neighbours, ControlKeepsApartWhatPaysAndJoinsWhatDoesNot) {
  const std::string two = image("%a = relu(%x) @\"a\"\n %y = sigmoid(%a) @\"b\"");
  EXPECT_EQ(edge_of(plan_of(two), "a", "b").group, "map@b");
  EXPECT_EQ(edge_of(plan_of(two, {.no_fuse = {{"a", "b"}}}), "a", "b").decline.code, "no_fuse");
  const std::string slow =
      "graph (%x: f32[1,64,32,32]) { %w = const rand<1> : f32[256,64,1,1] %a = tanh(%x) @\"act\"\n"
      "%y = conv(%a, %w) @\"conv\" return %y }";
  const FusionPlan forced = plan_of(slow, {.fuse = {{"act", "conv"}}});
  EXPECT_EQ(edge_of(forced, "act", "conv").group, "ConvBN@conv");
  EXPECT_THAT(forced.applied()[0]->notes, testing::Contains(HasSubstr("predicted slower")));
}

TEST(Neighbours, WhatCannotBeOneLaunchIsNotForced) {
  const std::string two =
      "graph (%x: f32[1,8,8,8]) { %w = const rand<1> : f32[8,8,3,3] %a = conv(%x, %w) @\"first\"\n"
      "%y = conv(%a, %w) @\"second\" return %y }";
  EXPECT_THROW(plan_of(two, {.fuse = {{"first", "second"}}}), Error);
  EXPECT_THROW(plan_of(two, {.no_fuse = {{"first", "secnd"}}}), Error);
}

/// A row that is looked up lies together: its sums take lanes along it, whichever row it is.
TEST(Neighbours, RowsThatAreLookedUpAreNormalisedInOneLaunch) {
  Tensor rows(DType::i64, {1, 19});
  for (int64_t i = 0; i < rows.elements(); ++i) rows.set_integer(i, i * 37 % 50 - (i % 2 ? 50 : 0));
  const Program program = expect_runs(
      "graph (%i: i64[1,19], %w: f32[50,103]) {\n %g = const rand<1> : f32[103]\n %b = const rand<2> : f32[103]\n"
      "%x = gather(%w, %i) {axis=0}\n %y = layer_norm(%x, %g, %b) {axis=-1}\n return %y }",
      {{"i", rows}});
  EXPECT_EQ(program.launches.size(), 1u);
}

/// Rows stored turned wait for as many lines as a vector has lanes: the norm stays apart from the transpose.
TEST(Neighbours, ANormWhoseRowsWouldBeStoredTurnedStaysApart) {
  const Program program = expect_runs(
      "graph (%x: f32[1,28,28,32]) {\n %g = const rand<1> : f32[32]\n %b = const rand<2> : f32[32]\n"
      "%w = const rand<3> : f32[64,32,3,3]\n %n = layer_norm(%x, %g, %b) {axis=-1}\n"
      "%t = transpose(%n) {perm=[0,3,1,2]}\n %y = conv(%t, %w) {strides=[2,2], pads=[1,1,1,1]}\n return %y }");
  EXPECT_EQ(program.launches.size(), 3u);
}

}  // namespace
}  // namespace opfuse
