// `opfuse quantize --to int8-weights|int4-weights`: codes for the weights of matrix products alone.
#pragma once

#include "quantize_flags.hpp"

namespace opfuse::cli {

/// Writes the model and says what its weights lost; flags of calibration are refused.
int code_weights_alone(const FlagSet& app, const QuantizeFlags& flags);

}  // namespace opfuse::cli
