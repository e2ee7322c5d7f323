// What a value of a stage depends on, directly and through the coordinates of what it reads.
#pragma once

#include <set>

#include "region/region.hpp"

namespace opfuse {

struct Dependence {
  std::set<int> axes;   ///< domain axes first, then reduce axes
  std::set<int> reads;  ///< of the stage, as values, in guards or in coordinates
};

/// `value` may be empty.
void add_dependence(const Stage& stage, const Expr& value, Dependence& found);
std::set<int> axes_of(const Stage& stage, const Expr& value);
/// Axes in the terms of a map; coordinates that are expressions have none.
std::set<int> axes_of(const IndexMap& map);

}  // namespace opfuse
