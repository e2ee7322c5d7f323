// A float32 model to one of f16 or bf16: half the bytes, the same interface.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse::quantization {

struct NarrowedModel {
  Graph graph;
  Graph reference;                           ///< the model as it was
  size_t values = 0;                         ///< that are 16 bits now, constants among them
  size_t casts = 0;                          ///< at inputs, outputs and around what stays in f32
  size_t bytes_before = 0, bytes_after = 0;  ///< of constants
  std::vector<std::string> kept;             ///< nodes that stay in f32: ONNX knows them in no other type
  std::vector<std::string> warnings;         ///< constants beyond the range of `to`
};

/// "f16", "bf16"; E::bad_option.
DType parse_narrow(const std::string& text);

/// Inputs and outputs keep their types and names. Constants are rounded to the nearest; what is too large becomes the
/// largest number of the type, scalars that would become 0 its smallest. E::bad_option for a model with Q/DQ pairs, or
/// without f32.
NarrowedModel narrow_floats(const Graph& model, DType to);

}  // namespace opfuse::quantization
