// Launches of routines: operands from the run's memory, results to it once their sizes are known.
#pragma once

#include "routine/routine.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {

/// Every symbol of it has a value.
bool is_known(const Dim& dim, const SymbolValues& symbols);
bool is_known(const Shape& shape, const SymbolValues& symbols);

int routines_in(const ArtifactProgram& program);

/// Runs it on the operands, which lie at the first `inputs` of the pointers.
RoutineResult run_routine(const RoutineLaunch& launch, std::span<void* const> pointers, const SymbolValues& symbols);
/// Copies results to the pointers behind the operands; null where nobody wants one.
void store_results(const RoutineLaunch& launch, const RoutineResult& found, std::span<void* const> pointers,
                   const SymbolValues& symbols);

}  // namespace opfuse
