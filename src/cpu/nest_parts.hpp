// How plain loop nests are cut into parts: by scalar operations.
#pragma once

#include <cstdint>

namespace opfuse {

/// Scalar operations that make a part worth its dispatch.
inline constexpr int64_t kNestGrain = 1 << 16;
inline constexpr int64_t kMostNestParts = 64;

}  // namespace opfuse
