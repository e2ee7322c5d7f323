// Integer arithmetic that the standard library lacks.
#pragma once

#include <cstdint>

namespace opfuse {

/// x / y rounded up; x >= 0, y > 0.
constexpr int64_t ceil_of(int64_t x, int64_t y) { return (x + y - 1) / y; }

}  // namespace opfuse
