// What is added to a sum before anything else reads it (a bias): the sum starts with it, and the addition is free.
#pragma once

#include "region/region.hpp"

namespace opfuse {

/// The read of f32, indexed by axis `vec` alone, that all outputs add to the stage's only sum before they do anything
/// else; -1: none.
int first_addend(const Stage& stage, int vec);

/// `value` where the sum has started with that read.
Expr without_addend(const Expr& value, int read);

}  // namespace opfuse
