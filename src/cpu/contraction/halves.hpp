// Sums of products of bf16 numbers in f32: one instruction multiplies pairs of neighbouring channels, so these lie side
// by side in a word (as in cpu/contraction/codes.hpp, with a unit of 2).
#pragma once

#include <optional>
#include <string>

#include "kernel/views.hpp"
#include "target/target.hpp"

namespace opfuse {

/// The target adds two products of bf16 at once in f32, with vectors of its own width.
bool has_half_products(const TargetInfo& target);

/// Why a region that multiplies bf16 numbers has no kernel of register tiles, were its operands laid out as it wishes.
std::optional<std::string> no_halves_kernel(const Region& region, const TargetInfo& target);

/// Why the same products are faster in f32.
std::optional<std::string> halves_lose(const Region& region, const TargetInfo& target);

}  // namespace opfuse
