// Tables of 16 floats in a register: one instruction looks up 16 lanes (AVX-512).
#pragma once

#include <array>

#include "cpu/emit/math/math_builder.hpp"

namespace opfuse::cpu {

using Table = std::array<float, 16>;

/// table[i mod 16] for the integer i of each of 16 lanes.
Real look_up(const Table& table, Real like, Value* index);

}  // namespace opfuse::cpu
