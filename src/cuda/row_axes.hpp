// How the rows skeleton splits a stage's axes.
#pragma once

#include "kernel/spec.hpp"
#include "region/region.hpp"

namespace opfuse::cuda {

struct RowAxes {
  std::vector<int> rows;   ///< domain axes the reductions depend on, outermost first as the first output lies in memory
  std::vector<int> inner;  ///< domain axes that share a run of the reductions
};
RowAxes row_axes(const Stage& stage, const std::vector<ParamLayout>& layouts);

}  // namespace opfuse::cuda
