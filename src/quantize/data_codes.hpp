// What codes activations get: a compiler's rules say it, --activations stands for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.hpp"

namespace opfuse::quantization {

enum class DataCodes {
  u8,      ///< any zero point
  s8,      ///< zero point 0
  by_sign  ///< as s8 where a tensor has negative numbers; u8 where it has none, and then the zero point is 0 too
};

/// "u8", "s8", "by-sign", as users write them.
const std::vector<std::string>& data_codes_names();
/// One of these. E::bad_option.
DataCodes parse_data_codes(std::string_view text);
/// "u8", "i8", "by_sign", as reports have them.
std::string_view name_of(DataCodes codes);

DType dtype_of(DataCodes codes, bool negative);

}  // namespace opfuse::quantization
