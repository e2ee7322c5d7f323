#pragma once

#include <cstdint>

namespace opfuse {

inline constexpr int64_t kLineBytes = 64;  ///< on every x86
inline constexpr int64_t kLineFloats = kLineBytes / 4;

}  // namespace opfuse
