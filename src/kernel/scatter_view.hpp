// What the scatter skeletons see in a stage: which axes keep updates of one element together.
#pragma once

#include <vector>

#include "region/region.hpp"

namespace opfuse {

struct ScatterView {
  /// Axes that are a coordinate of the result as they are: updates that differ there are of different elements and
  /// need no order among them.
  std::vector<int> lines;
  std::vector<int> ordered;  ///< the others, outermost first
  std::vector<int> dynamic;  ///< dimensions of the result at computed indices
};
ScatterView view_scatter(const Stage& stage);

}  // namespace opfuse
