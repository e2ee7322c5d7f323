// A routine on the numbers that the launches before it stored, against its operator's reference: what it gives are
// places, counts and copies, so nothing may differ.
#include <fmt/format.h>

#include "program/routine_launches.hpp"
#include "proof/prove_groups.hpp"
#include "routine/routine.hpp"

namespace opfuse {

void GroupProver::prove_routine(size_t index, GroupComparison& result) {
  const Launch& launch = runner_.program().launches[index];
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
  const RoutineResult found = run_routine(*routine_of(launch), operands);
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
