// Data-parallel loops for the compiler side (interpreter, weight packing, kernel compilation).
// The runtime has its own fork-join pool with microsecond barriers (runtime/thread_pool.hpp).
#pragma once

#include <cstdint>
#include <functional>

namespace opfuse {

/// Threads this process may use: affinity mask and cgroup CPU quota, at least 1.
int available_threads();

/// Calls body(i) for i in [0, count), on up to `threads` threads (0: available_threads()).
/// The first exception is rethrown on the caller's thread after all workers stopped.
void parallel_for(int64_t count, const std::function<void(int64_t)>& body, int threads = 0);

}  // namespace opfuse
