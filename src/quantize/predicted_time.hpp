// What the cost model expects of a model on this machine.
#pragma once

#include "ir/graph.hpp"
#include "quantize/observed_model.hpp"

namespace opfuse::quantization {

/// Milliseconds of one core, as opfuse would run it; nothing is generated.
double predicted_milliseconds(const Graph& graph, const SymbolValues& sizes, const RunOptions& options);

}  // namespace opfuse::quantization
