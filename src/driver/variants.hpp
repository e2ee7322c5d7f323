// Variants: a model with open dimensions compiled once more for given sizes, beside the kernels for all sizes.
#pragma once

#include <vector>

#include "ir/graph.hpp"
#include "link/build_artifact.hpp"
#include "target/target.hpp"

namespace opfuse {

/// A variant for each of `sizes`, in the order in which a run tries them, with its graph: that of the model after
/// fusion
/// (`fused`, before shaping) with the sizes filled in; then one that stretches, where the model has operands that may.
/// E::bad_option for sizes that are empty, given twice or of a target without variants, E::unknown_name for a dimension
/// that is not open.
std::vector<Variant> make_variants(const Graph& fused, const TargetInfo& target,
                                   const std::vector<SymbolValues>& sizes);

}  // namespace opfuse
