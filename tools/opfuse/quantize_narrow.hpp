// `opfuse quantize --to f16|bf16`: a model of 16-bit floats instead of codes.
#pragma once

#include "quantize_flags.hpp"

namespace opfuse::cli {

/// Writes the converted model and says what it lost; flags of codes are refused.
int convert_floats(const FlagSet& app, const QuantizeFlags& flags);

}  // namespace opfuse::cli
