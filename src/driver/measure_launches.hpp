// Timing the launches of whole programs, in network order: every kernel finds the caches as its predecessors leave
// them.
#pragma once

#include <vector>

#include "program/program.hpp"
#include "target/target.hpp"

namespace opfuse {

/// Nanoseconds of every run by program and launch. The programs run in turns on drawn inputs. E::bad_option when
/// dimensions are open.
std::vector<std::vector<std::vector<double>>> sample_launches(const std::vector<Program>& programs,
                                                              const TargetInfo& target, int threads);

/// Median nanoseconds by program and launch, of the same runs.
std::vector<std::vector<double>> time_launches(const std::vector<Program>& programs, const TargetInfo& target,
                                               int threads);

}  // namespace opfuse
