// Parts of index maps: a term is plain where it has neither divisor nor modulus; a dimension slides where an axis or a
// tap moves it.
#include "kernel/view_parts.hpp"

#include <algorithm>
#include <set>

#include "kernel/reads.hpp"

namespace opfuse {

bool plain(const IndexTerm& t) { return t.div == Dim(1) && t.mod == Dim(0) && t.coef.is_constant(); }

bool mentions(const Expr& e, ExprOp op) {
  bool found = false;
  e.visit([&](const Expr& x) { found |= x.op() == op; });
  return found;
}

std::optional<std::vector<SlidingDim>> sliding_dims(const Stage& stage, const IndexMap& map, const Shape& shape,
                                                    int vec, int channel, int channel_dim) {
  const auto domain = static_cast<int>(stage.domain.size());
  std::vector<SlidingDim> result;
  for (size_t d = 0; d < map.dims.size(); ++d) {
    if (static_cast<int>(d) == channel_dim) continue;
    SlidingDim s;
    s.dim = static_cast<int>(d);
    s.extent = shape[d];
    const IndexExpr& e = map.dims[d];
    if (e.dynamic || !e.offset.is_constant()) return std::nullopt;
    s.offset = *e.offset.constant();
    for (const IndexTerm& t : e.terms) {
      if (!plain(t) || t.axis == vec || t.axis == channel || *t.coef.constant() <= 0) return std::nullopt;
      int& axis = t.axis < domain ? s.axis : s.tap;
      if (axis >= 0) return std::nullopt;
      axis = t.axis;
      (t.axis < domain ? s.stride : s.dilation) = *t.coef.constant();
    }
    result.push_back(s);
  }
  return result;
}

bool each_axis_once(const std::vector<SlidingDim>& sliding) {
  std::set<int> seen;
  for (const SlidingDim& s : sliding)
    for (int axis : {s.axis, s.tap})
      if (axis >= 0 && !seen.insert(axis).second) return false;
  return true;
}

DType dtype_of(const Region& region, const Read& read) {
  if (read.stage < 0) return region.params[static_cast<size_t>(read.index)].type.dtype;
  return region.stages[static_cast<size_t>(read.stage)].outputs[static_cast<size_t>(read.index)].dtype;
}

bool stays_inside(const Region& region, const Stage& stage, int read, size_t dim) {
  const Read& r = stage.reads[static_cast<size_t>(read)];
  return always_inside(r.map.dims[dim], shape_read_by(region, r)[dim], axis_extents(stage));
}

bool is_constant(const Region& region, const Read& read) {
  return read.stage < 0 && region.params[static_cast<size_t>(read.index)].role == ParamRole::constant;
}

}  // namespace opfuse
