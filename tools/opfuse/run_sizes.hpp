// Sizes of the open dimensions of a run, those that only its data decide among them.
#pragma once

#include "inputs.hpp"
#include "opfuse/runtime.hpp"

namespace opfuse::cli {

/// Those of the inputs; where launches find more, a run tells them. 0: neither a kernel nor an output has that size.
SymbolValues sizes_of_run(const Executable& executable, const ModelInputs& inputs, int threads);

}  // namespace opfuse::cli
