// Sums of codes whose weights go in pairs (tensor/paired_codes.hpp) on targets without byte products.
#pragma once

#include "program/program.hpp"
#include "target/target.hpp"
#include "tune/choose_algorithms.hpp"

namespace opfuse {

/// Changes weight layouts and schedules of direct sums of codes whose weights allow it, within the request's bound on
/// growth, fills Program::algorithms ("pairs"), and adds a note that says of how many. Behind choose_algorithms, whose
/// weights count as well where the bound is given. Throws E::bad_option and E::unknown_name for what the request names.
void pair_codes(Program& program, const TargetInfo& target, const AlgorithmRequest& request);

}  // namespace opfuse
