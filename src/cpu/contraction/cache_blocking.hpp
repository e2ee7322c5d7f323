// How blocks of weights and rows of data of a contraction pass through the caches, and in which parts.
#pragma once

#include "cpu/contraction/contraction_schedule.hpp"
#include "kernel/spec.hpp"
#include "kernel/views.hpp"

namespace opfuse {

/// Parts, chunks of rows, passes over channels and what is fetched ahead. `items`: rows or tiles that parts cut.
void cut_parts(ContractionSchedule& s, const Region& region, const std::vector<ParamLayout>& layouts,
               const ContractionView& view, int64_t items, const TargetInfo& target);

/// Whether the data of a step are fetched while those of the one before are multiplied.
bool fetches_data(const ContractionSchedule& s, const Region& region, const std::vector<ParamLayout>& layouts,
                  const ContractionView& view, const TargetInfo& target);
/// What is fetched ahead alone: activations that do not stay in L2 beside the weights, or whose blocks lie apart.
void fetch_ahead(ContractionSchedule& s, const Region& region, const std::vector<ParamLayout>& layouts,
                 const ContractionView& view, const TargetInfo& target);

}  // namespace opfuse
