// Loops of a nest that run their border and their interior apart, so that the interior asks no guards: masks of lanes
// and counts of taps cost several times what the taps of a pool do.
#pragma once

#include "cpu/emit/generic/row_reductions.hpp"

namespace opfuse::cpu {

/// By axis. At most two, the lanes first, each of which triples the code of a body: nothing where that is long already.
std::map<int, AxisRange> interiors_of(const Kernel& k, const Stage& stage, const NestPlan& plan);

}  // namespace opfuse::cpu
