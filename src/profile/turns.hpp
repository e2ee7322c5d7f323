// Timing contexts against each other: in turns, so that what disturbs the machine disturbs all of them.
#pragma once

#include <functional>
#include <vector>

#include "opfuse/runtime.hpp"

namespace opfuse {

struct TurnSettings {
  double warmup_seconds = 0.2, duration_seconds = 3;
  int iterations = 10;  ///< at least
};

/// Milliseconds per run of each context, in turns (A B A B ...), until the duration is over for every one and each ran
/// the least number of times; ends early once `stop` says so, with what there is. `after_run(i)` follows every counted
/// run of contexts[i].
std::vector<std::vector<double>> measure_in_turns(const std::vector<Context*>& contexts, const TurnSettings& settings,
                                                  const std::function<bool()>& stop = {},
                                                  const std::function<void(size_t)>& after_run = {});

}  // namespace opfuse
