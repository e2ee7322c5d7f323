// What was left in float, kept in the model's file: `explain` says it of modules without pairs.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/placement.hpp"

namespace opfuse::quantization {

/// Writes the placement's modules in float to the graph's metadata, under "opfuse.quantize".
void keep_record(Graph& graph, const std::string& compiler, const Placement& placement);

/// A line of `explain` for each; none for models that opfuse did not quantise, or whose record is damaged.
std::vector<std::string> recorded_lines(const Graph& graph);

}  // namespace opfuse::quantization
