// Keeps the emitter's order of instructions where registers are counted.
#pragma once

#include <vector>

#include "cpu/emit/kernel.hpp"

namespace opfuse::cpu {

/// An empty instruction that uses and defines some accumulators (six at most are worth it) and memory: loads emitted
/// later stay behind the multiplications emitted before. Moved up, they would take a register from an accumulator.
void hold_back(Kernel& k, const std::vector<Value**>& accumulators);

/// `later`, with `value` still in its register: a multiply-add whose factor is not used again would put its sum there,
/// and accumulators would wander until one has no register.
Value* keep_until(Kernel& k, Value* value, Value* later);

/// The same integer, but no constant any more: a select by a mask of bits stays one (four units of Zen 5) and becomes
/// no shuffle (two, one of which multiplies).
Value* opaque(Kernel& k, Value* integer);

/// The same vector: what computes with a number in all lanes does not become what computes with the number first.
Value* opaque_vector(Kernel& k, Value* vector);

}  // namespace opfuse::cpu
