// A value between groups lies in memory in fewer bits: its producer stores it so, each reader widens what it loads.
//
//     [conv, relu] -- y f32 -- [conv, ..]      becomes      [conv, relu, cast] -- y' f16 -- [cast f32, conv, ..]
#pragma once

#include "ir/graph.hpp"
#include "shape/shape_context.hpp"

namespace opfuse {

/// Producer and readers are groups, which stay kernels of the same kind; all readers read the narrow form, or none:
/// then nothing is changed.
bool narrow_value(Graph& graph, Value* value, DType type, const ShapeContext& context);

}  // namespace opfuse
