// The groups in the order of the program; `values` holds what they stored so far. A value that no launch stores (a
// view) is computed from those.
#include "driver/compare_chain.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "driver/launch_runner.hpp"
#include "driver/rounding_ties.hpp"
#include "fusion/images.hpp"
#include "ir/value_name.hpp"

namespace opfuse {

namespace {

/// Bit for bit, or one NaN for another.
bool same_numbers(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) return false;
  if (a.same_bits(b)) return true;
  const Difference d = difference(a, b);
  return d.max_abs == 0;
}

struct Chain {
  std::map<std::string, Tensor> values;
  RoundingTies ties;

  const Tensor* value(const std::string& name) {
    if (const auto at = values.find(name); at != values.end()) return &at->second;
    if (!ties.has(name)) return nullptr;
    Tensor computed = ties.value(name, values);
    return &(values[name] = std::move(computed));
  }
  void results(const std::string& name, const std::vector<std::string>& inputs, const LaunchOracle::Take& take) {
    if (!ties.has(name)) return;
    for (const std::string& input : inputs) value(input);
    ties.values(name, values, {inputs.begin(), inputs.end()}, take);
  }
};

}  // namespace

bool quantises(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node* node) {
    return node->is("quantize_linear") || (node->body && quantises(*node->body));
  });
}

Comparison compare_chain(const Graph& graph, const Program& program, const Executable& executable,
                         const std::vector<Tensor>& inputs, const std::vector<Tensor>& other_inputs,
                         const CompareOptions& options) {
  const SymbolValues symbols = bind_symbols(graph, inputs);
  Chain chain{{}, RoundingTies(unroll_images(graph), symbols, options.group_tolerance)};
  for (size_t i = 0; i < inputs.size(); ++i) chain.values[value_name(*graph.inputs()[i])] = inputs[i];
  const LaunchOracle oracle{[&](const std::string& name) { return chain.value(name); },
                            [&](const std::string& name, const std::vector<std::string>& read,
                                const LaunchOracle::Take& take) { chain.results(name, read, take); },
                            [&](const std::string& name, Tensor stored) { chain.values[name] = std::move(stored); }};
  LaunchRunner runner(program, executable, symbols);
  Comparison comparison;
  comparison.chained = true;
  comparison.groups = runner.run_all(oracle, options);
  comparison.outputs = compare_outputs(graph, executable, inputs, other_inputs, options);
  const std::vector<Tensor> got = run_executable(executable, inputs, {.threads = options.threads});
  for (size_t i = 0; i < got.size(); ++i) {
    OutputComparison& output = comparison.outputs[i];
    output.from_interpreter = output.difference.relative();
    const Tensor* want = chain.value(graph.outputs()[i]->name);
    OPFUSE_CHECK(want, "output {} has no value", output.name);
    const Tensor stored = want->cast(got[i].dtype());
    output.difference = difference(got[i], stored);
    output.ok = same_numbers(got[i], stored);
  }
  return comparison;
}

}  // namespace opfuse
