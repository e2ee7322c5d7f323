// Time for intervals.
#pragma once

#include <chrono>
#include <cstdint>

namespace opfuse {

/// Nanoseconds of a clock that never goes back.
inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace opfuse
