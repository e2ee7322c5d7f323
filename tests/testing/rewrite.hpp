// Rewrite tests: a text graph in, a text graph out, compared structurally; then both run in the interpreter
// on the same seeded inputs and must agree.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "ir/graph.hpp"
#include "ops/registry.hpp"

namespace opfuse::testing {

using Rewrite = std::function<void(Graph&)>;

struct RewriteOptions {
  double tolerance = 1e-6;  ///< of the largest value
  bool run = true;          ///< false: the graphs cannot be interpreted (opaque nodes)
  SymbolValues symbols = {};
};

/// Small different values for the symbols a test does not fix.
inline SymbolValues test_symbols(const Graph& graph, SymbolValues symbols) {
  int64_t next = 2;
  for (const std::string& name : graph.symbols()) symbols.emplace(name, next++);
  return symbols;
}

inline void expect_same_values(const Graph& before, const Graph& after, const RewriteOptions& options) {
  const SymbolValues symbols = test_symbols(before, options.symbols);
  const std::vector<Tensor> inputs = random_inputs(before, {.seed = 1, .symbols = symbols});
  const std::vector<Tensor> want = interpret(before, inputs, {.symbols = symbols});
  const std::vector<Tensor> got = interpret(after, inputs, {.symbols = symbols});
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const Difference d = difference(got[i], want[i]);
    EXPECT_LE(d.max_abs, options.tolerance * std::max(1.0, d.max_reference)) << "output " << i << " at " << d.at;
  }
}

/// `rewrite` turns `before` into `after`, keeps the graph valid, its interface and its values.
inline void expect_rewrite(const Rewrite& rewrite, std::string_view before, std::string_view after,
                           const RewriteOptions& options = {}) {
  const Graph original = parse_graph(before, ops());
  const Graph expected = parse_graph(after, ops());
  Graph graph = original.clone();
  rewrite(graph);
  ASSERT_NO_THROW(verify(graph));
  std::string why;
  EXPECT_TRUE(equal(graph, expected, &why)) << why << "\n--- got\n"
                                            << print(graph) << "--- expected\n"
                                            << print(expected);
  for (size_t i = 0; i < original.outputs().size(); ++i) {
    EXPECT_EQ(graph.outputs()[i]->name, original.outputs()[i]->name) << "the interface changed";
  }
  if (options.run) expect_same_values(original, graph, options);
}

inline void expect_unchanged(const Rewrite& rewrite, std::string_view text) {
  expect_rewrite(rewrite, text, text, {.run = false});
}

}  // namespace opfuse::testing
