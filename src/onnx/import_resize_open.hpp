// Resize with antialiasing along open axes.
#pragma once

#include "onnx/node_import.hpp"
#include "ops/resize.hpp"

namespace opfuse::onnx {

/// A product with the weights of each axis, where filters widen as much as the run says; null where none do.
Value* resized_openly(NodeImport& n, const Resize::Attrs& attrs);

}  // namespace opfuse::onnx
