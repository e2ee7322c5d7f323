// Operands that decide shapes, computed from constants.
#pragma once

#include "ir/graph.hpp"

namespace opfuse::onnx {

/// `value` as a constant where all that it is computed from is constant: a table of positions of which Range takes its
/// end is not shape arithmetic by itself, being long and of floats. Otherwise `value`.
Value* settled(Graph& graph, Value* value);

}  // namespace opfuse::onnx
