// Operations on one code: whatever they round on the way, their result is one of 256 bytes.
//
//     cast<u8>(f(c)),  c = min(max(round_even(x), low), low + 255)        table[i] = cast<u8>(f(low + i))
//
// A GELU with a pair of QuantizeLinear and DequantizeLinear behind each of its five operators is such a table.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "cpu/emit/kernel.hpp"
#include "expr/expr.hpp"

namespace opfuse::cpu {

inline constexpr int kCodes = 256;

struct CodeTable {
  Expr code;                            ///< u8: which entry
  std::array<uint8_t, kCodes> bytes{};  ///< results, u8 or i8, as the interpreter rounds them
};

/// Nothing where the expression is another, or too short to be worth a table. A NaN has no entry, so every real number
/// that is read in front of the code has to satisfy `is_number`: known not to be NaN.
std::optional<CodeTable> code_table(const Expr& e, const std::function<bool(const Expr& read)>& is_number);

/// Bytes for bytes: a scalar or a vector.
Value* look_up(Kernel& k, const CodeTable& table, Value* codes);

}  // namespace opfuse::cpu
