// An If that the run decides is both of its branches and a choice (onnx/branches.cpp): what that asks of a run.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {

/// A line for each such If of which a branch needs sizes that suit only itself: a run that breaks them is refused, the
/// branch taken or not.
std::vector<std::string> notes_on_branches(const Graph& graph, const std::vector<DimConstraint>& constraints);

}  // namespace opfuse
