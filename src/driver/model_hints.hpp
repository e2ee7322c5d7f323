// What the nodes of a model's file say about their fusion becomes part of the request that plans it.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "opfuse/opfuse.hpp"

namespace opfuse {

/// Adds to `request.no_fuse` and `request.fuse`, by names of the prepared graph. What the request says itself comes
/// first; what could not be taken is a note.
void take_model_hints(const Graph& prepared, PlanRequest& request, std::vector<std::string>& notes);

}  // namespace opfuse
