// How often threads that run at the same time can repeat a piece of work: the meter behind every measured limit.
#pragma once

#include <functional>
#include <vector>

namespace opfuse {

using RepeatedPass = std::function<void()>;

/// Passes per second, all threads together. make_pass(thread) runs on each thread once, so that memory it allocates is
/// touched first where it is used. `seconds` is shared out over the rounds; a round is at least one pass.
double passes_per_second(int threads, double seconds, const std::function<RepeatedPass(int)>& make_pass,
                         int rounds = 40);

/// The processors this thread may run on.
std::vector<int> allowed_processors();

}  // namespace opfuse
