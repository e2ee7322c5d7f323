// What the weights of matrix products multiply, from samples.
#pragma once

#include "quantize/code_weights.hpp"
#include "quantize/observed_model.hpp"
#include "quantize/samples.hpp"

namespace opfuse::quantization {

/// Of all f32 tensors that a MatMul or Gemm reads as its data. E::bad_binding as calibrate().
DataPowers measure_powers(const Graph& model, const Samples& samples, const RunOptions& options);

}  // namespace opfuse::quantization
