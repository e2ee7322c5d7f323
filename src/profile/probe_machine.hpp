// The numbers of this machine that a target's file may state, measured.
#pragma once

#include <functional>
#include <string>

#include "target/target.hpp"

namespace opfuse {

/// Of the processor, as the kernel calls it; "unknown".
std::string processor_name();

struct MachineProbe {
  double clock_hz = 0;
  int threads = 1;
  TargetInfo measured;  ///< the target with what was measured in place of its own
};

/// Measures the core's units, its clock, and what it reads, alone and with all `threads`: about a second. `progress` is
/// told each step before it begins.
MachineProbe probe_machine(const TargetInfo& target, int threads, const std::function<void(const char*)>& progress);

/// Fields that probe_machine measures, "rates.memory"; others are the target's own.
const std::vector<std::string>& probed_fields();

/// A file that extends the target with what was measured of it.
std::string toml_of(const MachineProbe& probe, const std::string& extended);

}  // namespace opfuse
