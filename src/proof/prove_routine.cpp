// A routine on the numbers that the launches before it stored, against its operator's reference: what it gives are
// places, counts and copies, so nothing may differ.
#include <fmt/format.h>

#include "ir/value_name.hpp"
#include "program/routine_launches.hpp"
#include "proof/prove_groups.hpp"
#include "routine/routine.hpp"

namespace opfuse {

RoutineResult GroupProver::run_routine_on_values(const Launch& launch) {
  const size_t inputs = launch.buffers.size() - results_of_routine(launch);
  std::vector<Tensor> given(inputs);
  std::vector<const Tensor*> operands(inputs, nullptr);
  for (size_t i = 0; i < inputs; ++i) {
    const int b = launch.buffers[i];
    if (b < 0) continue;
    const Buffer& buffer = runner_.program().buffers[static_cast<size_t>(b)];
    given[i] = buffer.kind == BufferKind::constant ? buffer.constant : operand(b, {});
    operands[i] = &given[i];
  }
  return run_routine(*routine_of(launch), operands);
}

/// The graph's values have the sizes of the exact run: where others are found, what that run has takes the place of
/// the routine's results. `known`: its values, the inputs at least.
std::string GroupProver::keep_exact_sizes(const Launch& launch, const RoutineResult& found,
                                          const GroupValues::Known& known) {
  const RoutineCall call = *routine_of(launch);
  std::string other;
  for (size_t i = 0; i < call.defines.size() && other.empty(); ++i)
    if (const int64_t exact = runner_.symbols().at(call.defines[i]); exact != found.sizes.at(i))
      other = fmt::format("{} is {}, and {} in the exact run: rounding decided otherwise", call.defines[i],
                          found.sizes[i], exact);
  if (other.empty()) return other;
  std::set<std::string> inputs;
  for (const Value* input : graph_.inputs()) inputs.insert(value_name(*input));
  for (size_t i = launch.buffers.size() - results_of_routine(launch); i < launch.buffers.size(); ++i) {
    if (launch.buffers[i] < 0) continue;
    const std::string name = key(launch.buffers[i], {});
    if (!oracle_.has(name)) continue;
    const auto at = known.find(name);
    Tensor exact = at != known.end() ? at->second : oracle_.results({name}, known, inputs)[0];
    values_[name] = exact.cast(oracle_.dtype_of(name));
  }
  return other;
}

void GroupProver::prove_routine(size_t index, GroupComparison& result) {
  const Launch& launch = runner_.program().launches[index];
  const size_t inputs = launch.buffers.size() - results_of_routine(launch);
  const RoutineResult found = run_routine_on_values(launch);
  result.problem = keep_exact_sizes(launch, found, values_);
  if (!result.problem.empty()) {
    result.ok = false;
    return;
  }
  for (size_t r = 0; inputs + r < launch.buffers.size(); ++r) {
    const int b = launch.buffers[inputs + r];
    if (b < 0) continue;
    const Tensor& want = operand(b, {});
    result.output = runner_.program().buffers[static_cast<size_t>(b)].name;
    const Tensor& got = found.results.at(r);
    if (got.sizes() != want.sizes()) {
      result.problem = fmt::format("gives {} where {} is expected", got.type().text(), want.type().text());
      break;
    }
    result.difference = difference(got, want);
    if (result.difference.max_abs > 0) {
      result.problem = fmt::format("element {} is not what it has to be", result.difference.at);
      break;
    }
  }
  result.ok = result.problem.empty();
}

}  // namespace opfuse
