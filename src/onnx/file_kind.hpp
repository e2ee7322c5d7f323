// What a file that is not an ONNX model is instead.
#pragma once

#include <optional>

#include "onnx/wire.hpp"
#include "opfuse/error.hpp"

namespace opfuse::onnx {

/// E::malformed_model that names the kind of file and what to do: a git-lfs pointer, an HTML page, a PyTorch archive,
/// other formats of models, a model that ends too early. Nothing when the bytes look like neither. Meant for bytes
/// that failed to decode: some signatures are valid beginnings of a protobuf message.
std::optional<Error> other_kind_of_file(Bytes bytes);

}  // namespace opfuse::onnx
