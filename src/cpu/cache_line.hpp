#pragma once

#include <cstdint>

namespace opfuse {

inline constexpr int64_t kLineFloats = 16;  ///< of a cache line: 64 bytes on every x86

}  // namespace opfuse
