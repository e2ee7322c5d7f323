// Expressions of the logistic function, as exporters and laws spell them.
#pragma once

#include <optional>

#include "expr/expr.hpp"

namespace opfuse {

/// z, when `e` is 1 + exp(z) in f32.
std::optional<Expr> exponent_of_logistic(const Expr& e);

/// x, when `e` is x / (1 + exp(-x)) or x * (1 / (1 + exp(-x))) in f32.
std::optional<Expr> argument_of_silu(const Expr& e);

}  // namespace opfuse
