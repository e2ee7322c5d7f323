// Timing the launches of whole programs, in network order: every kernel finds the caches as its predecessors leave
// them.
#pragma once

#include <functional>
#include <vector>

#include "program/program.hpp"
#include "target/target.hpp"

namespace opfuse {

/// How often each program runs.
struct LaunchRounds {
  int fewest = 3, most = 15;
  double seconds = 15;           ///< no more rounds begin after so long
  std::function<bool()> stop{};  ///< true: no more rounds begin
};

/// Nanoseconds of every run by program and launch. The programs run in turns on drawn inputs. E::bad_option when
/// dimensions are open.
std::vector<std::vector<std::vector<double>>> sample_launches(const std::vector<Program>& programs,
                                                              const TargetInfo& target, int threads,
                                                              const LaunchRounds& rounds = {});

/// Median nanoseconds by program and launch, of the same runs.
std::vector<std::vector<double>> time_launches(const std::vector<Program>& programs, const TargetInfo& target,
                                               int threads);

}  // namespace opfuse
