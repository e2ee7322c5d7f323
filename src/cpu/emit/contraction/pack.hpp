// Weights that a part packs itself (schedule number "pack").
#pragma once

#include "cpu/emit/contraction/plan.hpp"

namespace opfuse::cpu {

/// Packs block `block` of what is taken for weights into scratch, where ContractionPlan::weights looks for it.
void pack_block(const ContractionPlan& plan, const Env& env, Value* block);

}  // namespace opfuse::cpu
