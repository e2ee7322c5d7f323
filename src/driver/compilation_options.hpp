// The public options of compiling in the words of the driver.
#pragma once

#include <map>
#include <string>

#include "driver/compilation.hpp"
#include "opfuse/opfuse.hpp"

namespace opfuse {

CompilationOptions compilation_options(const CompileOptions& options);

/// Deep copies. E::bad_binding for an array without data.
std::map<std::string, Tensor> copies_of(const std::map<std::string, ArrayView>& arrays);

/// The graph with these inputs as constants.
Graph with_fixed(Graph graph, const std::map<std::string, ArrayView>& arrays);

}  // namespace opfuse
