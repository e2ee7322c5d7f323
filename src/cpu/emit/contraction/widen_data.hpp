// Data that a tile widens once per step, and how products read them (widen_data.cpp).
#pragma once

#include "cpu/emit/contraction/tile.hpp"

namespace opfuse::cpu {

/// The step's data are widened before they are multiplied.
bool widens(const ContractionPlan& plan, int64_t channels);

/// What products take of a pixel's data at channel `lane` + `channel` of the step.
Factor widened_data_of(const ContractionPlan& plan, Value* lane, int64_t channel, int64_t pixel);

}  // namespace opfuse::cpu
