// One walk over several expressions: the values of a stage share most of their nodes.
#pragma once

#include <functional>
#include <span>

#include "expr/expr.hpp"

namespace opfuse {

/// Each distinct node of several expressions once, operands first; empty ones are passed over.
void visit_each(std::span<const Expr* const> values, const std::function<void(const Expr&)>& each);

}  // namespace opfuse
