// Groups one after another, then the whole: what the groups stored must be the run's bits.
#include "proof/compare.hpp"

#include <algorithm>
#include <limits>

#include "base/fail.hpp"
#include "interp/found_sizes.hpp"
#include "ir/value_name.hpp"
#include "proof/conditioning.hpp"
#include "proof/graph_of_launches.hpp"
#include "proof/prove_groups.hpp"
#include "tensor/tf32.hpp"

namespace opfuse {

constexpr double kOutputTolerance = 1e-4;

double tolerance_of(DType dtype, double stated) {
  if (dtype == DType::f16 || dtype == kTf32) return std::max(stated, 2e-3);
  if (dtype == DType::bf16) return std::max(stated, 1e-2);
  return stated;
}

bool Comparison::ok() const {
  const auto passed = [](const auto& item) { return item.ok; };
  return std::all_of(groups.begin(), groups.end(), passed) && std::all_of(outputs.begin(), outputs.end(), passed);
}

const GroupComparison* Comparison::worst() const {
  const auto share = [](const GroupComparison& g) { return std::max(g.real.of_bound, g.exact.of_bound); };
  const auto at =
      std::max_element(groups.begin(), groups.end(), [&](const auto& a, const auto& b) { return share(a) < share(b); });
  return at == groups.end() ? nullptr : &*at;
}

std::vector<GroupComparison> compare_groups(const Graph& graph, const Program& program, const Executable& executable,
                                            const std::vector<Tensor>& inputs, const CompareOptions& options) {
  const Graph of_launches = graph_of_launches(graph);
  return GroupProver(of_launches, program, executable, all_sizes(graph, inputs), options).run(inputs);
}

std::vector<Tensor> run_executable(const Executable& executable, const std::vector<Tensor>& inputs,
                                   ContextOptions options) {
  Context context = executable.create_context(std::move(options));
  const auto& infos = executable.inputs();
  if (inputs.size() != infos.size())
    throw fail(E::bad_binding, "the model has {} inputs, {} arrays were given", infos.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    context.bind(infos[i].name, {inputs[i].dtype(), const_cast<void*>(inputs[i].data()), inputs[i].sizes()});
  context.run();
  std::vector<Tensor> results;
  for (const TensorInfo& info : executable.outputs()) {
    const ArrayView view = context.output(info.name);
    results.push_back(Tensor::wrap(view.dtype, view.shape, view.data, nullptr).clone());
  }
  return results;
}

/// What other inputs change; nothing without them.
static void measure_change(const Executable& executable, const std::vector<Tensor>& got,
                           const std::vector<Tensor>& other_inputs, const CompareOptions& options,
                           std::vector<OutputComparison>& outputs) {
  if (other_inputs.empty()) return;
  const std::vector<Tensor> other = run_executable(executable, other_inputs, {.threads = options.threads});
  for (size_t i = 0; i < got.size(); ++i)
    if (other[i].sizes() == got[i].sizes()) outputs[i].change = difference(other[i], got[i]).relative();
}

/// Of another size, which data decided otherwise (a score beside a threshold): as far as can be.
static Difference distance(const Tensor& got, const Tensor& want) {
  if (got.sizes() == want.sizes()) return difference(got, want);
  return {.max_abs = std::numeric_limits<double>::infinity(), .max_reference = 1};
}

std::vector<OutputComparison> compare_outputs(const Graph& graph, const Executable& executable,
                                              const std::vector<Tensor>& inputs,
                                              const std::vector<Tensor>& other_inputs, const CompareOptions& options) {
  if (options.progress) options.progress("compare outputs", 0, 0);
  const std::vector<Tensor> want = interpret(graph_of_launches(graph), inputs);
  const std::vector<Tensor> got = run_executable(executable, inputs, {.threads = options.threads});
  std::vector<OutputComparison> results;
  for (size_t i = 0; i < want.size(); ++i) {
    OutputComparison result{executable.outputs()[i].name, distance(got[i], want[i])};
    result.ok = result.difference.relative() <=
                tolerance_of(want[i].dtype(), options.output_tolerance.value_or(kOutputTolerance));
    results.push_back(std::move(result));
  }
  measure_change(executable, got, other_inputs, options, results);
  return results;
}

namespace {

/// Bit for bit, or one NaN for another.
bool same_numbers(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) return false;
  return a.same_bits(b) || difference(a, b).max_abs == 0;
}

/// Elements that may be off by a step, are right in their type alone, or of which nothing is claimed: later values are
/// others then.
bool has_steps(const GroupComparison& g) { return g.ties > 0 || g.real.typed > 0 || g.real.unclaimed > 0; }

bool holds_halves(const Graph& graph) {
  const auto half = [](const Value* c) { return c->type.dtype == DType::f16 || c->type.dtype == DType::bf16; };
  const auto& constants = graph.constants();
  return std::any_of(constants.begin(), constants.end(), half);
}

/// How far weights that a plan rounds when compiling (shape/narrow_weights.cpp) move the outputs: an error of the
/// precision that was asked for, not of kernels.
std::vector<double> moved_by_weights(const Graph& model, const Graph& of_launches, const std::vector<Tensor>& inputs) {
  std::vector<double> moved(of_launches.outputs().size(), 0);
  if (!holds_halves(of_launches)) return moved;
  const std::vector<Tensor> rounded = interpret(of_launches, inputs),
                            read = interpret(graph_of_launches(model), inputs);
  for (size_t i = 0; i < moved.size(); ++i) moved[i] = difference(rounded[i], read[i]).max_abs;
  return moved;
}

}  // namespace

Comparison compare_model(const Graph& model, const Graph& fused, const Program& program, const Executable& executable,
                         const std::vector<Tensor>& inputs, const std::vector<Tensor>& other_inputs,
                         const CompareOptions& options) {
  Comparison comparison;
  const Graph of_launches = graph_of_launches(fused);
  GroupProver prover(of_launches, program, executable, all_sizes(fused, inputs), options);
  comparison.groups = prover.run(inputs);
  comparison.outputs = compare_outputs(model, executable, inputs, other_inputs, options);
  if (options.progress) options.progress("measure conditioning", 0, 0);
  const std::vector<Tensor> got = run_executable(executable, inputs, {.threads = options.threads});
  const std::vector<double> conditioning = measure_conditioning(prover, inputs, got);
  const std::vector<double> moved = moved_by_weights(model, of_launches, inputs);
  const bool steps = std::any_of(comparison.groups.begin(), comparison.groups.end(), has_steps);
  std::optional<std::optional<std::string>> tie;  // looked for once
  for (size_t i = 0; i < got.size(); ++i) {
    OutputComparison& output = comparison.outputs[i];
    const Tensor* stored = prover.value(value_name(*of_launches.outputs()[i]));
    OPFUSE_CHECK(stored, "output {} has no value", output.name);
    output.same_as_groups = same_numbers(got[i], stored->cast(got[i].dtype()));
    const double largest = output.difference.max_reference;
    output.conditioning = largest > 0 ? conditioning[i] / largest : 0;
    output.precision = largest > 0 ? moved[i] / largest : 0;
    output.judged = is_float(got[i].dtype()) && !steps;
    const bool explained = options.output_tolerance
                               ? output.difference.relative() <= *options.output_tolerance
                               : output.difference.max_abs <= kConditioningFactor * conditioning[i] + moved[i];
    if (output.judged && !explained && !options.output_tolerance) {
      if (!tie) tie = prover.tie_between_groups(inputs);
      output.tie_at = tie->value_or("");
      output.judged = output.tie_at.empty();
    }
    output.ok = output.same_as_groups && (!output.judged || explained);
  }
  return comparison;
}

}  // namespace opfuse
