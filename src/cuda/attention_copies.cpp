#include "cuda/attention_copies.hpp"

#include "cuda/vector_body.hpp"
#include "kernel/reads.hpp"

namespace opfuse::cuda {
bool rows_of_eights(const Stage& stage, const std::vector<ParamLayout>& layouts, const Expr& operand, int axis) {
  if (operand.op() != ExprOp::read) return false;
  const Read& read = stage.reads[static_cast<size_t>(operand.index())];
  const Dim extent = axis_extents(stage)[static_cast<size_t>(axis)];
  if (read.stage >= 0 || !extent.is_constant() || extent.value() % 8) return false;
  const ParamLayout& l = layouts[static_cast<size_t>(read.index)];
  if (!l.layout.blocks.empty()) return false;
  Dim along = 0;
  for (size_t i = 0; i < l.layout.order.size(); ++i) {
    const IndexExpr& d = read.map.dims[static_cast<size_t>(l.layout.order[i])];
    if (d.dynamic || !multiple_of(d.offset * l.strides[i], 8)) return false;
    for (const IndexTerm& t : d.terms) {
      const Dim step = t.coef * l.strides[i];
      if (t.axis != axis) {
        if (!multiple_of(step, 8)) return false;
        continue;
      }
      if (!(t.div == Dim(1)) || !(t.mod == Dim(0))) return false;
      along = along + step;
    }
  }
  return along == Dim(1);
}

}  // namespace opfuse::cuda
