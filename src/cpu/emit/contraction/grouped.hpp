// The groups of channels that vectors of outputs touch.
#pragma once

#include "cpu/emit/contraction/tile.hpp"

namespace opfuse::cpu {

/// Of the vector that starts at output channel `first`: its groups' first channels, lane masks of all but the first.
Groups groups_from(const ContractionPlan& plan, Value* first);

}  // namespace opfuse::cpu
