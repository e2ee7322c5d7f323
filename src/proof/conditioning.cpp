// The kernels run one after another with their operands moved at random; independent roundings of the same size move
// the outputs as far. Largest deviations of few runs differ by a small factor only.
#include "proof/conditioning.hpp"

#include <algorithm>

namespace opfuse {

std::vector<double> measure_conditioning(GroupProver& prover, const std::vector<Tensor>& inputs,
                                         const std::vector<Tensor>& outputs) {
  constexpr uint64_t kRuns = 2;
  std::vector<double> largest(outputs.size(), 0);
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    const std::vector<Tensor> moved = prover.run_with_noise(inputs, seed);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Difference d = difference(moved[i], outputs[i]);
      const double least = 2 * unit_of(outputs[i].dtype()) * d.max_reference;  // one rounding of the largest value
      largest[i] = std::max({largest[i], least, d.max_abs});
    }
  }
  return largest;
}

}  // namespace opfuse
