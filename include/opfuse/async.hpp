// Runs that do not wait for their end.
#pragma once

#include <future>

#include "opfuse/runtime.hpp"

namespace opfuse {

/// context.run() in a thread of its own. What it would throw, get() throws. Until then nobody else uses the context or
/// moves it, and bound arrays stay alive. The future waits in its destructor, too: a run never outlives its scope.
OPFUSE_API std::future<void> run_async(Context& context);

}  // namespace opfuse
