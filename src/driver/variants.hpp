// Variants: a model with open dimensions compiled once more for given sizes, beside the kernels for all sizes.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.hpp"
#include "program/program.hpp"
#include "target/target.hpp"

namespace opfuse {

/// The program for some sizes. It has the groups of the program for all sizes; layouts, schedules and algorithms are
/// those that the sizes alone would get. The last one may be the program that stretches (ArtifactVariant::stretches).
struct Variant {
  SymbolValues when;
  std::shared_ptr<Graph> graph;  ///< what the program is lowered from
  Program program;
  bool stretches = false;
};

/// A variant for each of `sizes`, in the order in which a run tries them, with its graph: that of the model after
/// fusion
/// (`fused`, before shaping) with the sizes filled in; then one that stretches, where the model has operands that may.
/// E::bad_option for sizes that are empty, given twice or of a target without variants, E::unknown_name for a dimension
/// that is not open.
std::vector<Variant> make_variants(const Graph& fused, const TargetInfo& target,
                                   const std::vector<SymbolValues>& sizes);

}  // namespace opfuse
