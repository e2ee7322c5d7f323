// Models from memory and into memory: what frameworks hand over without a file.
#pragma once

#include <string>

#include "opfuse/opfuse.hpp"

namespace opfuse {

/// Reads a serialized ONNX ModelProto. External data is looked for in `folder`; without one a model that has any is
/// refused. Throws E01xx errors.
OPFUSE_API Model load_bytes(std::string bytes, const LoadOptions& options = {}, const std::string& folder = "");

/// What Model::save writes, weights included.
OPFUSE_API std::string save_bytes(const Model& model, bool flatten = false);

}  // namespace opfuse
