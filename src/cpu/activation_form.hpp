// Activations in expressions, as exporters and laws spell them, and where they are computed by tables of polynomials.
#pragma once

#include <optional>
#include <set>
#include <string_view>

#include "region/region.hpp"
#include "target/target.hpp"

namespace opfuse {

/// Knob of a launch: activations of 16 floats by tables of polynomials (cpu/emit/math/activation_tables.cpp).
inline constexpr std::string_view kActivationTables = "activation_tables";

/// gelu_rounded: its sqrt(1/2) was rounded to 16 bits, as in files of halves.
enum class TabledActivation { silu, gelu, gelu_rounded, gelu_tanh };

struct ActivationForm {
  TabledActivation activation;
  Expr x;
  double stretch = 1;  ///< of gelu_rounded: x (1 + erf(x stretch sqrt(1/2))) / 2 = GELU(stretch x) / stretch
};

/// z, when `e` is 1 + exp(z) in f32.
std::optional<Expr> exponent_of_logistic(const Expr& e);

/// When `e` is in f32:
///   SiLU  x / (1 + exp(-x)), x * (1 / (1 + exp(-x)))
///   GELU  the product of x, 1/2 and 1 + erf(x sqrt(1/2)) in any order, also by divisions by constants; sqrt(1/2) of
///         16 bits too
///   its approximation by tanh  the same with 1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))
std::optional<ActivationForm> activation_form(const Expr& e);

/// What the tables serve in the region; nothing where the target has no 16 float lanes.
std::set<TabledActivation> tabled_activations(const Region& region, const TargetInfo& target);

}  // namespace opfuse
