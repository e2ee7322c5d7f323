// How fast a core gets what it streams, for cost models. Sizes of caches are the target's; rates are those of current
// x86 servers, in bytes per cycle, measured with `bench/limits` and, beside multiply-adds, `bench/winograd_parts`
// (bench/NOTES.md, Winograd: the cost model). A model needs their order, not the last tenth.
#pragma once

#include <cmath>
#include <cstdint>

namespace opfuse {

/// One core, from memory: 25 to 33 GB/s on Zen 4 and 5 at 3.7 GHz (Sapphire Rapids: 17).
inline constexpr double kCoreMemoryBytesPerCycle = 8;
/// Twice the cores get so many times the bytes: 25 -> 28 GB/s on Zen 4, 32 -> 38 on Zen 5, both virtual machines.
inline constexpr double kMemoryGainPerDoubling = 1.2;
/// One core, weights from L3 beside a full stream of multiply-adds; alone it is 9 (Sapphire Rapids) to 27 (Zen).
inline constexpr double kL3WeightBytesPerCycle = 7;
/// One core, transformed data from L3: shorter rows, which the hardware fetches ahead.
inline constexpr double kL3DataBytesPerCycle = 24;
/// One core, a map between two kernels, stored or loaded, wherever it lies in L2 or L3 (bench/NOTES.md, Chains).
inline constexpr double kMapBytesPerCycle = 30;
/// What weights that are to be read again may take of L3; activations pass through the rest.
inline constexpr double kWeightShareOfL3 = 0.75;
/// Of two things that overlap, the shorter still costs this share: neither is busy all the time.
inline constexpr double kOverlapLoss = 0.12;

/// All of `threads` cores together.
inline double memory_bytes_per_cycle(int64_t threads) {
  return kCoreMemoryBytesPerCycle * std::pow(kMemoryGainPerDoubling, std::log2(static_cast<double>(threads)));
}

inline double overlapped(double a, double b) { return std::fmax(a, b) + kOverlapLoss * std::fmin(a, b); }

}  // namespace opfuse
