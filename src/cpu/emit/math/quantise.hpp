// Real numbers to codes of u8 or i8: cast(add(min(max(round_even(x), low), high), zero)).
#pragma once

#include <array>
#include <optional>

#include "cpu/emit/kernel.hpp"
#include "expr/expr.hpp"

namespace opfuse::cpu {

struct CodeForm {
  Expr x;
  DType dtype = DType::u8;
  double low = 0, high = 0, zero = 0;  ///< low + zero and high + zero are the ends of the codes
};
/// Nothing where the expression is another.
std::optional<CodeForm> code_form(const Expr& e);

/// x: a whole vector of f32.
bool has_code_instructions(Kernel& k, Value* x);
Value* emit_code(Kernel& k, Value* x, const CodeForm& form);

/// Of four vectors at once: their codes behind each other.
inline constexpr size_t kVectorsOfCodes = 4;
Value* emit_codes(Kernel& k, const std::array<Value*, kVectorsOfCodes>& x, const CodeForm& form);

}  // namespace opfuse::cpu
