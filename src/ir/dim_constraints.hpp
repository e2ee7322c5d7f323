// What a graph's open dimensions must satisfy for its shapes to be what inference says they are.
#pragma once

#include <vector>

#include "ir/graph.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {

/// What inference of the nodes, bodies included, assumes of the symbols of the graph's inputs. Equal relations once.
std::vector<DimConstraint> dim_constraints(const Graph& graph);

/// E::shape_mismatch for the first one that these sizes break; those with a symbol that has none yet are left.
void check_given(const std::vector<DimConstraint>& constraints, const SymbolValues& symbols);

/// Appends what is not in `into` yet.
void add_constraints(std::vector<DimConstraint>& into, const std::vector<DimConstraint>& more);

}  // namespace opfuse
