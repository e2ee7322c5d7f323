// Keeps the emitter's order of instructions where registers are counted.
#pragma once

#include <vector>

#include "codegen/cpu/kernel.hpp"

namespace opfuse::cpu {

/// An empty instruction that uses and defines some accumulators (six at most are worth it) and memory: loads emitted
/// later stay behind the multiplications emitted before. Moved up, they would take a register from an accumulator.
void hold_back(Kernel& k, const std::vector<Value**>& accumulators);

}  // namespace opfuse::cpu
