// Corrections that few numbers need, such as the reduction of angles above 131,072.
#pragma once

#include <functional>
#include <vector>

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

/// `usual`, with the values of `rare` in the lanes of `needed`. `jumps`: `rare` runs only if some lane needs it, and
/// the emitted code is then several blocks; else it always runs.
std::vector<Value*> correct_lanes(Kernel& k, Value* needed, std::vector<Value*> usual, bool jumps,
                                  const std::function<std::vector<Value*>()>& rare);

}  // namespace opfuse::cpu
