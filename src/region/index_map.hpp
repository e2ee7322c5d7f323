// Algebra of index maps: composition and the maps of reshapes.
#pragma once

#include "region/region.hpp"

namespace opfuse {

/// inner after outer: `outer` takes iteration coordinates (extents given) to coordinates of a value,
/// `inner` takes those to coordinates of another. Divisions of sums are resolved where extents allow;
/// what stays outside the form becomes a dynamic index.
IndexMap compose(const IndexMap& inner, const IndexMap& outer, const std::vector<Dim>& extents);

/// Coordinates of `operand` as a function of coordinates of `result`, two shapes of equal element count.
IndexMap reshape_map(const Shape& result, const Shape& operand);

bool has_dynamic(const IndexMap& map);

/// The index as an integer expression over coord leaves.
Expr index_value(const IndexExpr& index);
/// A dimension as an expression: a constant or an extent leaf.
Expr dim_value(const Dim& dim);

}  // namespace opfuse
