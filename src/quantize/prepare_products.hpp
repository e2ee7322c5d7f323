// The graph as codes need it: BatchNorm folded into the weights in front of it, projections of attention as plain
// Linears.
#pragma once

#include "ir/graph.hpp"
#include "quantize/placement.hpp"

namespace opfuse::quantization {

/// A copy of the graph that a placement is for; `placement` then names nodes and values of the copy. Values with a pair
/// get names where they had none. `for_operators`, of a runtime that runs each operator by itself: x clip(x + 3, 0, 6)
/// / 6 becomes x HardSigmoid(x), and a residual addition in front of a LayerNormalization a Sum.
Graph prepare_products(const Graph& prepared, Placement& placement, bool for_operators);

}  // namespace opfuse::quantization
