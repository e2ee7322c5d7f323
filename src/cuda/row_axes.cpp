#include "cuda/row_axes.hpp"

#include <algorithm>

#include "cuda/stage.hpp"
#include "region/dependence.hpp"

namespace opfuse::cuda {

RowAxes row_axes(const Stage& stage, const std::vector<ParamLayout>& layouts) {
  std::vector<int> order;
  const StageOutput& output = stage.outputs.at(0);
  for (int dim : layouts[static_cast<size_t>(output.param)].layout.order)
    for (const IndexTerm& t : output.map.dims[static_cast<size_t>(dim)].terms)
      if (std::find(order.begin(), order.end(), t.axis) == order.end()) order.push_back(t.axis);
  for (int axis = static_cast<int>(stage.domain.size()); axis-- > 0;)
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.insert(order.begin(), axis);
  std::set<int> used;
  for (const Reduction& r : stage.reductions) used.merge(axes_of(stage, r.value));
  RowAxes axes;
  for (int axis : order) (stage.reductions.empty() || used.count(axis) ? axes.rows : axes.inner).push_back(axis);
  return axes;
}

}  // namespace opfuse::cuda
