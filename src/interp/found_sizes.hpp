// Sizes that a run finds (ir/defined_symbols.hpp), as the interpreter finds them.
#pragma once

#include "interp/interpreter.hpp"

namespace opfuse {

/// bind_symbols, and what the graph's nodes define with these inputs: the graph is interpreted where they define
/// anything.
SymbolValues all_sizes(const Graph& graph, const std::vector<Tensor>& inputs, const SymbolValues& known = {});

}  // namespace opfuse
