// Schedules that were measured (opfuse tune): with --measure a program takes them from the cache of times, by region,
// layouts and machine. Whoever lowers measures nothing for them.
#pragma once

#include <string>

#include "driver/known_times.hpp"

namespace opfuse {

/// Timing::form of a schedule, "schedule contraction nv=2 ...".
std::string form_of(const Schedule& schedule);

/// Gives each launch the schedule that this build measured fastest on this machine, and adds a note that says for how
/// many launches, and for how many there are times of another machine or build alone, which are not used. Schedules
/// that the generator refuses are left, with a note.
void take_measured_schedules(Program& program, const TargetInfo& target, const KnownTimes& times);

}  // namespace opfuse
