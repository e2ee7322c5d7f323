// Variants: a model with open dimensions compiled once more for given sizes, beside the kernels for all sizes.
#pragma once

#include <memory>
#include <vector>

#include "driver/pipeline.hpp"

namespace opfuse {

/// The program for some sizes. It has the groups of the program for all sizes; layouts, schedules and algorithms are
/// those that the sizes alone would get.
struct Variant {
  SymbolValues when;
  std::shared_ptr<const Graph> graph;  ///< what the program was lowered from
  Program program;
};

struct VariantRequest {
  std::vector<SymbolValues> sizes;  ///< a variant each, in the order in which a run tries them
  bool fused = true;                ///< false: the graph has no groups to shape for the target
  bool chains = true;
  LowerOptions lower{};
};

/// `graph` is the model after fusion, before shape_for_target. E::bad_option for sizes that are empty, given twice or
/// of a target without variants, E::unknown_name for a dimension that is not open.
std::vector<Variant> make_variants(const Graph& graph, const TargetInfo& target, const VariantRequest& request);

}  // namespace opfuse
