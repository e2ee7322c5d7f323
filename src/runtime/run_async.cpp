// A thread for each run: some 20 us beside kernels of milliseconds, and no queue whose life somebody has to manage.
#include "opfuse/async.hpp"

namespace opfuse {

std::future<void> run_async(Context& context) {
  return std::async(std::launch::async, [&context] { context.run(); });
}

}  // namespace opfuse
