// One row of floats times weights that lie as codes, by products of bytes (kernel/coded_weights.hpp, digits.cpp).
#pragma once

#include "cpu/emit/contraction/tile.hpp"

namespace opfuse::cpu {

/// The data of the row at `env` into scratch, as digits.
void write_digits(const ContractionPlan& plan, const Env& env);

/// The products of one tile of a single pixel; its data are in scratch.
void add_digits(const ContractionPlan& plan, const Tile& tile);

/// Whether all of the row's data can be written so (an i1): finite, and none so small that a factor would overflow.
Value* has_digits(const ContractionPlan& plan);

}  // namespace opfuse::cpu
