// Loops over parts in the interpreter: the values of the nodes on the whole.
#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

std::vector<Tensor> values(const std::string& text, const SymbolValues& symbols = {}) {
  const Graph graph = parse_graph(text, ops());
  return interpret(graph, random_inputs(graph, {.seed = 2, .symbols = symbols}), {.symbols = symbols});
}

void expect_same(const std::string& loop, const std::string& whole, const SymbolValues& symbols = {}) {
  const std::string head = "graph (%x: f32[4,6,n], %w: f32[6,6]) { ";
  const std::vector<Tensor> a = values(head + loop + " return %y }", symbols),
                            b = values(head + whole + " return %y }", symbols);
  EXPECT_TRUE(a[0].same_bits(b[0])) << loop;
}

TEST(ForParts, GivesTheValuesOfTheWhole) {
  const SymbolValues n{{"n", 3}};
  expect_same("%y = for_parts (%x) {parts = 4, cuts = [0], joins = [0]} { %s = softmax(%x) {axis = 1} yield %s }",
              "%y = softmax(%x) {axis = 1}", n);
  expect_same("%y = for_parts (%x) {parts = 2, cuts = [1], joins = [1]} { %s = softmax(%x) {axis = 0} yield %s }",
              "%y = softmax(%x) {axis = 0}", n);
  expect_same(
      "%t = transpose(%x) {perm = [0,2,1]} %y = for_parts (%t, %w) {parts = 3, cuts = [-1,1], joins = [2]} { %m = "
      "matmul(%t, %w) yield %m }",
      "%t = transpose(%x) {perm = [0,2,1]} %y = matmul(%t, %w)", n);
}

TEST(ForParts, BodiesAreObservedWhereThatIsAskedFor) {
  const Graph graph = parse_graph(
      "graph (%x: f32[4]) { %y = for_parts (%x) {parts = 2, cuts = [0], joins = [0]} { %r = relu(%x) yield %r } "
      "return %y }",
      ops());
  int seen = 0;
  InterpretOptions options;
  options.observe = [&](const Value*, const Tensor&) { ++seen; };
  interpret(graph, random_inputs(graph, {}), options);
  EXPECT_EQ(seen, 1);
  options.observe_bodies = true;
  interpret(graph, random_inputs(graph, {}), options);
  EXPECT_EQ(seen, 1 + 3);
}

}  // namespace
}  // namespace opfuse
