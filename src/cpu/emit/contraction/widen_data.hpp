// Data that a tile widens once, and how products read them (widen_data.cpp).
#pragma once

#include "cpu/emit/contraction/tile.hpp"

namespace opfuse::cpu {

/// The step's data are widened before they are multiplied.
bool widens(const ContractionPlan& plan, int64_t channels);

/// So many steps are widened before the first of their products; 0: there are none.
int64_t steps_ahead(const ContractionPlan& plan);

/// What products take of a pixel's data at channel `lane` + `channel` of the step whose data lie at `place`.
Factor widened_data_of(const ContractionPlan& plan, Value* place, Value* lane, int64_t channel, int64_t pixel);

}  // namespace opfuse::cpu
