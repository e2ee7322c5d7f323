// What the wishes of several skeletons have in common.
#pragma once

#include "kernel/views.hpp"
#include "program/layout_wish.hpp"
#include "target/target.hpp"

namespace opfuse {

/// Outputs and epilogue operands that have the output's shape follow it: channels (domain axis `vec`) in blocks of a
/// vector. Rows of features are as good dense.
void wish_like_output(const Region& region, const Stage& stage, int vec, const TargetInfo& target, LayoutWish& wish);

}  // namespace opfuse
