// erf of 16 floats by polynomials whose coefficients are looked up in registers (AVX-512).
#pragma once

#include "cpu/emit/math/math_builder.hpp"

namespace opfuse::cpu {

bool has_erf_table(Real x);
Real erf_by_table(Real x);  ///< x: 16 floats on a target with vectors of 64 bytes

}  // namespace opfuse::cpu
