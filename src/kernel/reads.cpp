#include "kernel/reads.hpp"

#include <algorithm>

#include "expr/held_ops.hpp"

namespace opfuse {

std::set<int> reads_used(const Expr& e) {
  std::set<int> reads;
  e.visit([&](const Expr& x) {
    if (x.op() == ExprOp::read || x.op() == ExprOp::in_bounds) reads.insert(x.index());
  });
  return reads;
}

/// Reads at the coordinates of a guarded one, such as both operands of select(in0, min(r0, r1), 0): where that one is
/// outside they are too, and the guard stands for all of them.
static void add_twins(const Stage& stage, std::set<int>& guarded) {
  const auto asked = guarded;
  for (size_t i = 0; i < stage.reads.size(); ++i)
    if (std::any_of(asked.begin(), asked.end(),
                    [&](int read) { return stage.reads[static_cast<size_t>(read)].map == stage.reads[i].map; }))
      guarded.insert(static_cast<int>(i));
}

std::set<int> guarded_reads(const Stage& stage) {
  std::set<int> reads;
  const auto collect = [&](const Expr& e) {
    if (!holds(e, ExprOp::in_bounds)) return;
    e.visit([&](const Expr& x) {
      if (x.op() == ExprOp::in_bounds) reads.insert(x.index());
    });
  };
  for (const Reduction& r : stage.reductions) collect(r.value);
  for (const StageOutput& o : stage.outputs) {
    collect(o.value);
    for (const IndexExpr& e : o.map.dims) collect(e.dynamic);
  }
  for (const Read& r : stage.reads)
    for (const IndexExpr& e : r.map.dims) collect(e.dynamic);
  add_twins(stage, reads);
  return reads;
}

bool may_share_memory(const Region& region, const Read& read, const StageOutput& output) {
  if (read.stage >= 0 || read.index == output.param) return false;
  const Param& param = region.params[static_cast<size_t>(read.index)];
  return param.role == ParamRole::input && param.type.shape == output.shape;
}

bool never_written(const Region& region, int param) {
  const Param& read = region.params[static_cast<size_t>(param)];
  if (read.role != ParamRole::input) return read.role == ParamRole::constant;
  const Dim size = read.type.shape.elements();
  return std::all_of(region.params.begin(), region.params.end(), [&](const Param& written) {
    if (written.role == ParamRole::input || written.role == ParamRole::constant) return true;
    const Dim of_result = written.type.shape.elements();
    if (size.is_constant() && of_result.is_constant()) return !(size == of_result);
    return size.is_constant() != of_result.is_constant();  // shared only where the types are the same
  });
}

CoordinateRange coordinate_range(const IndexExpr& index, const std::vector<Dim>& extents) {
  if (index.dynamic || !index.offset.is_constant()) return {};
  CoordinateRange range{index.offset.value(), index.offset.value()};
  for (const IndexTerm& t : index.terms) {
    const auto coef = t.coef.constant(), div = t.div.constant(), mod = t.mod.constant(),
               extent = extents.at(static_cast<size_t>(t.axis)).constant();
    if (!coef) return {};
    auto& end = *coef < 0 ? range.low : range.high;
    if (!div || !mod || !extent || *div < 1) {
      end.reset();
      continue;
    }
    int64_t last = std::max<int64_t>(*extent - 1, 0) / *div;
    if (*mod > 0) last = std::min(last, *mod - 1);
    if (end) *end += *coef * last;
  }
  return range;
}

bool always_inside(const IndexExpr& e, const Dim& size, const std::vector<Dim>& extents) {
  if (e.dynamic) return false;
  if (e.offset.constant() == 0 && e.terms.size() == 1) {
    const IndexTerm& t = e.terms[0];
    if (t.coef.constant() == 1 && t.div.constant() == 1 && t.mod.constant() == 0 &&
        extents.at(static_cast<size_t>(t.axis)) == size)
      return true;
  }
  const CoordinateRange range = coordinate_range(e, extents);
  return range.low && range.high && size.is_constant() && *range.low >= 0 && *range.high < *size.constant();
}

std::vector<Dim> axis_extents(const Stage& stage) {
  std::vector<Dim> extents = stage.domain;
  extents.insert(extents.end(), stage.reduce.begin(), stage.reduce.end());
  return extents;
}

}  // namespace opfuse
