// Rows that fall into few sets of a first-level cache: reading some of each, a kernel finds none of them again.
#pragma once

#include <cstdint>
#include <numeric>

#include "target/target.hpp"

namespace opfuse {

/// From one address to the next of the same set: 64 sets of lines, in every x86.
inline constexpr int64_t kSetsBytes = 4096;

/// All rows start in one set.
constexpr bool share_a_set(int64_t pitch) { return pitch % kSetsBytes == 0; }

/// So many rows start in fewer lines of the cache than there are rows.
inline bool rows_collide(int64_t rows, int64_t pitch, const TargetInfo& target) {
  const int64_t ways = target.l1_bytes / kSetsBytes, starts = kSetsBytes / std::gcd(kSetsBytes, pitch);
  return rows > ways * starts;
}

}  // namespace opfuse
