#include "kernel/scatter_view.hpp"

#include <algorithm>

namespace opfuse {

ScatterView view_scatter(const Stage& stage) {
  ScatterView view;
  const std::vector<IndexExpr>& dims = stage.outputs.at(0).map.dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    const IndexExpr& e = dims[d];
    if (e.dynamic) view.dynamic.push_back(static_cast<int>(d));
    const bool plain = !e.dynamic && e.terms.size() == 1 && e.terms[0].div == Dim(1) && e.terms[0].mod == Dim(0) &&
                       e.terms[0].coef == Dim(1);
    if (plain) view.lines.push_back(e.terms[0].axis);
  }
  for (int axis = 0; axis < static_cast<int>(stage.domain.size()); ++axis)
    if (std::find(view.lines.begin(), view.lines.end(), axis) == view.lines.end()) view.ordered.push_back(axis);
  return view;
}

}  // namespace opfuse
