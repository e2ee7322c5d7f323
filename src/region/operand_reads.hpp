// How often a region reads what it is given.
#pragma once

#include "region/region.hpp"

namespace opfuse {

/// By parameter, reads for each of its elements: of every reduction, and of the outputs of every stage, the points of
/// the axes that the coordinates mention (others share a read), equal reads once. 1 for a map, 9 for a window of 3 x 3
/// with stride 1, 3 for a softmax. Open dimensions are 1.
std::vector<double> reads_by_element(const Region& region);

}  // namespace opfuse
