#include "region/dependence.hpp"

namespace opfuse {

void add_dependence(const Stage& stage, const Expr& value, Dependence& found) {
  if (!value) return;
  value.visit([&](const Expr& e) {
    if (e.op() == ExprOp::coord) found.axes.insert(e.index());
    if (e.op() != ExprOp::read && e.op() != ExprOp::in_bounds) return;
    if (!found.reads.insert(e.index()).second) return;
    const IndexMap& map = stage.reads[static_cast<size_t>(e.index())].map;
    found.axes.merge(axes_of(map));
    for (const IndexExpr& dim : map.dims) add_dependence(stage, dim.dynamic, found);
  });
}

std::set<int> axes_of(const Stage& stage, const Expr& value) {
  Dependence found;
  add_dependence(stage, value, found);
  return found.axes;
}

std::set<int> axes_of(const IndexMap& map) {
  std::set<int> axes;
  for (const IndexExpr& dim : map.dims) {
    if (dim.dynamic) continue;
    for (const IndexTerm& term : dim.terms) axes.insert(term.axis);
  }
  return axes;
}

}  // namespace opfuse
