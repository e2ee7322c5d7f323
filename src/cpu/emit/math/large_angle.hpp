// Quarter turns of large angles.
#pragma once

#include "cpu/emit/math/math_builder.hpp"

namespace opfuse::cpu {

/// From here on reduce_large takes over from products with parts of pi / 2, which are exact up to here without fused
/// multiply-adds too.
inline constexpr double kLargeAngle = 131072;

/// An angle is pi / 2 quadrant + rest, |rest| <= pi / 4; of the quadrant the last two bits count.
struct ReducedAngle {
  Real rest;
  Value* quadrant = nullptr;
};

/// Of floats in double, kLargeAngle <= |x| < inf; any numbers for others. The rest is off by 2^-60.
ReducedAngle reduce_large(Real x);

}  // namespace opfuse::cpu
