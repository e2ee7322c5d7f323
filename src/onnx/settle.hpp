// Operands that decide shapes, computed from constants.
#pragma once

#include <string>

#include "base/limits.hpp"
#include "ir/graph.hpp"

namespace opfuse::onnx {

/// `value` as a constant where all that it is computed from is constant: a table of positions of which Range takes its
/// end is not shape arithmetic by itself, being long and of floats. Otherwise `value`; where a limit is why,
/// `limited` says so.
Value* settled(Graph& graph, Value* value, const Limits& limits, std::string& limited);

}  // namespace opfuse::onnx
