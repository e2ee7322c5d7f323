// Launches of routines (routine/routine.hpp) in a program: reference launches whose schedule says which routine runs,
// with which settings, and which symbols it gives their values:  "routine.unique gives.n_ids=0 results=3 setting.0=1".
#pragma once

#include <optional>

#include "program/program.hpp"
#include "routine/routine_call.hpp"

namespace opfuse {

Schedule schedule_of(const RoutineCall& call, size_t results);

/// Nothing for other launches.
std::optional<RoutineCall> routine_of(const Launch& launch);
bool is_routine(const Launch& launch);

/// So many of the launch's buffers, the last ones, are results.
size_t results_of_routine(const Launch& launch);

}  // namespace opfuse
