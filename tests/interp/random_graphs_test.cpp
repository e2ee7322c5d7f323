// Properties of the interpreter on random graphs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/fail.hpp"
#include "interp/interpreter.hpp"
#include "interp/random_inputs.hpp"
#include "testing/random_graph.hpp"

namespace opfuse {
namespace {

struct Case {
  Graph graph;
  std::vector<Tensor> inputs;
};

Case random_case() {
  Case c{testing::RandomGraph({.opaque = false}).make(), {}};
  SymbolValues symbols;
  for (const std::string& symbol : c.graph.symbols()) symbols[symbol] = *rc::gen::inRange<int64_t>(1, 5);
  c.inputs = random_inputs(c.graph, {.seed = *rc::gen::arbitrary<uint64_t>(), .symbols = symbols});
  return c;
}

/// Runs, or discards the case when the random graph asks for the impossible (unequal symbols that must broadcast).
std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs, const InterpretOptions& options = {}) {
  try {
    return interpret(graph, inputs, options);
  } catch (const Error& error) {
    RC_PRE(error.diagnostic().code.starts_with("E02"));
    RC_DISCARD("shapes do not fit");
  }
}

RC_GTEST_PROP(Interpreter, GivesTheSameBitsEveryTimeAndForAClone, ()) {
  const Case c = random_case();
  const auto a = run(c.graph, c.inputs), b = run(c.graph.clone(), c.inputs);
  RC_ASSERT(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) RC_ASSERT(a[i].same_bits(b[i]));
}

RC_GTEST_PROP(Interpreter, SurvivesPrintingAndParsing, ()) {
  const Case c = random_case();
  const Graph parsed = parse_graph(print(c.graph, {.max_constant_elements = 1000000}), ops());
  const auto a = run(c.graph, c.inputs), b = run(parsed, c.inputs);
  for (size_t i = 0; i < a.size(); ++i)
    if (!a[i].same_bits(b[i])) RC_FAIL(print(c.graph));
}

RC_GTEST_PROP(Interpreter, ReturnsTheDeclaredTypesInBothPrecisions, ()) {
  const Case c = random_case();
  for (Precision precision : {Precision::exact, Precision::typed}) {
    const auto out = run(c.graph, c.inputs, {.precision = precision});
    for (size_t i = 0; i < out.size(); ++i) {
      const DType declared = c.graph.outputs()[i]->type.dtype;
      if (declared != DType::unknown) RC_ASSERT(out[i].dtype() == declared);
    }
  }
}

}  // namespace
}  // namespace opfuse
