// The proof of a floating-point model: every launch on the interpreter's tensors, then the whole model.
#include "driver/compare.hpp"

#include <algorithm>
#include <map>

#include "base/fail.hpp"
#include "driver/launch_runner.hpp"
#include "fusion/images.hpp"
#include "ir/value_name.hpp"

namespace opfuse {
namespace {}  // namespace

double tolerance_of(DType dtype, double stated) {
  if (dtype == DType::f16) return std::max(stated, 2e-3);
  if (dtype == DType::bf16) return std::max(stated, 1e-2);
  return stated;
}

bool Comparison::ok() const {
  const auto passed = [](const auto& item) { return item.ok; };
  return std::all_of(groups.begin(), groups.end(), passed) && std::all_of(outputs.begin(), outputs.end(), passed);
}

const GroupComparison* Comparison::worst() const {
  const auto at = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.difference.relative() < b.difference.relative();
  });
  return at == groups.end() ? nullptr : &*at;
}

std::vector<GroupComparison> compare_groups(const Graph& graph, const Program& program, const Executable& executable,
                                            const std::vector<Tensor>& inputs, const CompareOptions& options) {
  std::map<std::string, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[value_name(*graph.inputs()[i])] = inputs[i];
  InterpretOptions interpret_options;
  interpret_options.observe = [&](const Value* value, const Tensor& tensor) { values[value_name(*value)] = tensor; };
  interpret_options.observe_bodies = true;
  if (options.progress) options.progress("interpret", 0, 0);
  interpret(unroll_images(graph), inputs, interpret_options);
  const LaunchOracle oracle{[&](const std::string& name) {
                              const auto at = values.find(name);
                              return at == values.end() ? nullptr : &at->second;
                            },
                            [](const std::string&, const std::vector<std::string>&, const LaunchOracle::Take&) {},
                            {}};
  LaunchRunner runner(program, executable, bind_symbols(graph, inputs));
  return runner.run_all(oracle, options);
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

std::vector<OutputComparison> compare_outputs(const Graph& graph, const Executable& executable,
                                              const std::vector<Tensor>& inputs,
                                              const std::vector<Tensor>& other_inputs, const CompareOptions& options) {
  if (options.progress) options.progress("compare outputs", 0, 0);
  const std::vector<Tensor> want = interpret(unroll_images(graph), inputs);
  const std::vector<Tensor> got = run_executable(executable, inputs, {.threads = options.threads});
  const std::vector<Tensor> other = run_executable(executable, other_inputs, {.threads = options.threads});
  std::vector<OutputComparison> results;
  for (size_t i = 0; i < want.size(); ++i) {
    OutputComparison result{executable.outputs()[i].name, difference(got[i], want[i]), 0, false};
    if (other[i].sizes() == got[i].sizes()) result.change = difference(other[i], got[i]).relative();
    result.ok = result.difference.relative() <= tolerance_of(want[i].dtype(), options.output_tolerance);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace opfuse
