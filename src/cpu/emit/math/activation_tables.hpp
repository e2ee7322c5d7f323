// Activations of 16 floats by tables of polynomials (AVX-512), in launches whose schedule has the knob.
#pragma once

#include "cpu/activation_form.hpp"
#include "cpu/emit/math/math_builder.hpp"

namespace opfuse::cpu {

bool has_activation_tables(Real x);
/// Bounds: docs/accuracy.md. The limit at -inf is within 1e-7 of 0, NaN stays.
Real emit_by_table(const ActivationForm& form, Real x);

}  // namespace opfuse::cpu
