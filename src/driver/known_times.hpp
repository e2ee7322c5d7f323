// What was measured before on this machine, as a compilation with --measure sees it.
#pragma once

#include <string>
#include <vector>

#include "program/program.hpp"
#include "target/target.hpp"
#include "tune/timing_cache.hpp"

namespace opfuse {

/// "AMD EPYC, cpu:avx2, 2 threads": TimingKey::machine. `threads` 0: the default.
std::string timing_machine(const TargetInfo& target, int threads);

struct KnownTimes {
  TimingCache cache;
  std::string machine;  ///< timing_machine
  std::string file;     ///< where new times are written, and what notes call the cache
};

/// The first of `files` is written, the others are read too; none: the default file.
KnownTimes read_times(const std::vector<std::string>& files, const TargetInfo& target, int threads);

/// Key of a launch by its region, and how its operands lie with their strides.
TimingKey launch_key(const Program& program, const Launch& launch, const std::string& machine);

/// Median, spread and count of nanoseconds, in the cache's units.
Timing timing_of(const std::string& form, const std::vector<double>& nanoseconds, const std::string& generator);

}  // namespace opfuse
