// Cleaning any graph keeps its interface and its values, and a second time changes nothing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "passes/passes.hpp"
#include "testing/random_graph.hpp"
#include "testing/rewrite.hpp"

namespace opfuse {
namespace {

RC_GTEST_PROP(Cleaning, KeepsTheValuesOfAnyGraph, ()) {
  const Graph original = testing::RandomGraph({.opaque = false, .strange = false}).make();
  RC_LOG() << print(original);
  Graph graph = original.clone();
  run_passes(graph, cleaning_passes(), {.reproducer_dir = OPFUSE_BINARY_DIR});
  RC_LOG() << print(graph);
  const SymbolValues symbols = testing::test_symbols(original, {});
  const std::vector<Tensor> inputs = random_inputs(original, {.seed = 3, .symbols = symbols});
  const auto want = interpret(original, inputs, {.symbols = symbols});
  const auto got = interpret(graph, inputs, {.symbols = symbols});
  RC_ASSERT(want.size() == got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    RC_ASSERT(got[i].type() == want[i].type());
    const std::string& name = original.outputs()[i]->name;
    RC_ASSERT(name.empty() || graph.outputs()[i]->name == name);
    const Difference d = difference(got[i], want[i]);
    // A folded half or float was rounded once more than the exact interpreter rounds it.
    RC_ASSERT(d.max_abs <= 2e-3 * std::max(1.0, d.max_reference));
  }
  RC_ASSERT(!run_passes(graph, cleaning_passes()).changed());
}

}  // namespace
}  // namespace opfuse
