// Which operators the runtime has routines for (routine/routine.hpp).
#pragma once

#include <optional>

#include "ir/graph.hpp"
#include "routine/routine_call.hpp"

namespace opfuse {

/// How the runtime computes the node; nothing when no routine does, or its sizes have no names.
std::optional<RoutineCall> routine_of(const Node& node);

}  // namespace opfuse
