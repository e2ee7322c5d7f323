// Rows of attention's operands as 16-byte copies see them.
#pragma once

#include "kernel/spec.hpp"

namespace opfuse::cuda {

/// Whether a plain read's elements lie together along `axis`, in whole vectors of eight that begin at multiples of 16
/// bytes wherever the other axes stand. Those may be divided: queries that share keys.
bool rows_of_eights(const Stage& stage, const std::vector<ParamLayout>& layouts, const Expr& operand, int axis);

}  // namespace opfuse::cuda
