// Real numbers to u8 codes: cast<u8>(add(min(max(round_even(x), low), high), zero)).
#pragma once

#include <optional>

#include "cpu/emit/kernel.hpp"
#include "expr/expr.hpp"

namespace opfuse::cpu {

struct CodeForm {
  Expr x;
  double low = 0, high = 0, zero = 0;  ///< low + zero is 0, high + zero 255
};
/// Nothing where the expression is another.
std::optional<CodeForm> code_form(const Expr& e);

/// x: a whole vector of f32.
bool has_code_instructions(Kernel& k, Value* x);
Value* emit_code(Kernel& k, Value* x, const CodeForm& form);

}  // namespace opfuse::cpu
