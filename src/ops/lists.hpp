// The parts of the operator list; ops.cpp joins them.
#pragma once

#include "ir/op_info.hpp"

namespace opfuse {

void register_elementwise(OpRegistry& registry);  ///< list_elementwise.cpp
void register_shape(OpRegistry& registry);        ///< list_shape.cpp
void register_structured(OpRegistry& registry);   ///< list_structured.cpp

}  // namespace opfuse
