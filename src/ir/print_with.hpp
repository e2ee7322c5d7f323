// Printing with a say in how large constants appear.
#pragma once

#include <functional>
#include <string>

#include "ir/graph.hpp"

namespace opfuse {

/// `large` gives the payload text of a constant too large to print, e.g. "file<\"x.bin\", 64>".
std::string print_with(const Graph& graph, const PrintOptions& options,
                       const std::function<std::string(const Tensor&)>& large);

}  // namespace opfuse
