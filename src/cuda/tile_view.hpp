// A contraction as matrix products see it: which axes index the rows of A, the columns of B, both, or are summed.
//   result(batch, m, n) = sum over k of A(batch, m, k) * B(batch, k, n)
// A convolution is one too (implicit GEMM): its A is the image read through the window's index map.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "region/region.hpp"

namespace opfuse::cuda {

struct TileView {
  std::vector<int> batch, m, n, k;  ///< axes, outermost first
  Expr a, b;
};
/// Of the region's only stage; why not otherwise.
std::variant<TileView, std::string> view_tiles(const Region& region);

/// Splits output-channel axes that convolution groups divide, (o) -> (group, o within it), so that the group becomes
/// an axis of both operands. Regions without groups stay as they are.
void split_groups(Region& region);

}  // namespace opfuse::cuda
