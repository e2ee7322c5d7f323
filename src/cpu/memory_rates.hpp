// How fast cores get what they stream, for cost models: sizes and rates are the target's (targets/x86.toml).
#pragma once

#include <cmath>
#include <cstdint>

#include "target/target.hpp"

namespace opfuse {

/// All of `threads` cores together.
inline double memory_bytes_per_cycle(const TargetInfo& target, int64_t threads) {
  return target.rates.memory * std::pow(target.rates.memory_gain_per_doubling, std::log2(static_cast<double>(threads)));
}

/// Of two things that overlap, the shorter still costs a share: neither is busy all the time.
inline double overlapped(double a, double b, const TargetInfo& target) {
  return std::fmax(a, b) + target.kernels.overlap_loss * std::fmin(a, b);
}

}  // namespace opfuse
