// Element types.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "opfuse/dtype.hpp"

namespace opfuse {

size_t byte_size(DType dtype);          ///< bytes per element in memory; 0 for string and unknown
int bit_size(DType dtype);              ///< bits that carry an element's value: 4 of i4's byte
std::string_view name_of(DType dtype);  ///< "f32", "bool", ...
std::optional<DType> parse_dtype(std::string_view name);
bool is_float(DType dtype);
bool is_integer(DType dtype);  ///< signed or unsigned, not boolean
bool is_signed(DType dtype);
bool is_small_float(DType dtype);  ///< of less than 32 bits: widened to f32 to be computed with

}  // namespace opfuse
