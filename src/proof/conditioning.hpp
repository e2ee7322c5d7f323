// How much a model makes of roundings: its answer to noise of their size in every value.
#pragma once

#include <vector>

#include "proof/prove_groups.hpp"

namespace opfuse {

/// Of each output, in its own unit: how far noise moves it that has the size of the groups' own proven errors, at least
/// half a unit. The largest of a few runs. `outputs`: those without noise. Not of the output's largest value: where
/// terms cancel, all of an output may be rounding.
std::vector<double> measure_conditioning(GroupProver& prover, const std::vector<Tensor>& inputs,
                                         const std::vector<Tensor>& outputs);

/// An output may be so many times its conditioning from the interpreter's.
inline constexpr double kConditioningFactor = 8;

}  // namespace opfuse
