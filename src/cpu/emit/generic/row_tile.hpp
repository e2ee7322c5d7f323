// How many rows a plain nest with reductions goes over at once.
#pragma once

#include "cpu/emit/generic/row_reductions.hpp"
#include "cpu/emit/stage.hpp"

namespace opfuse::cpu {

/// Rows that are reduced together: their sums hide each other's latency, and the rows stay in L1.
int64_t rows_at_once(const Kernel& k, const Stage& stage, const NestPlan& plan);

/// Of `rows` that were reduced together, those whose results are stored in one loop. Each row of each result is a
/// stream of its own: beyond a few, their lines wait for each other.
int64_t rows_stored_at_once(const StageEmitter& stage, const NestPlan& plan, int64_t rows);

}  // namespace opfuse::cpu
