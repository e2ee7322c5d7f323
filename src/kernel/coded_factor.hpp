// A factor of a product that is a dequantised code.
#pragma once

#include <optional>

#include "region/region.hpp"

namespace opfuse {

/// (code - zero) * scale; the code is u8 or i8, zero and scale are the same everywhere.
struct CodedFactor {
  Expr code;
  Expr zero;  ///< i32, of a byte or the number of one; empty: 0
  Expr scale;
};
/// As DequantizeLinear is lowered; nothing where `e`, an expression of `stage`, is another.
std::optional<CodedFactor> coded_factor(const Stage& stage, const Expr& e);

}  // namespace opfuse
