// Encoding of a value's name and type.
#pragma once

#include <string>

#include "onnx/wire.hpp"
#include "tensor/tensor.hpp"

namespace opfuse::onnx {

/// A ValueInfoProto. A symbol becomes dim_param; an expression over symbols becomes its text.
std::string encode_value_info(Bytes name, const TensorType& type);

}  // namespace opfuse::onnx
