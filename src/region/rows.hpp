// Row stages whose result keeps the reduced axes: softmax, normalisations.
#pragma once

#include "region/lowering.hpp"

namespace opfuse {

struct Row {
  Lowering& lowering;
  const Value* value;
  IndexMap reduce_map;  ///< the operand along the reduce axes
  Dim elements;         ///< of one row
  Expr along();         ///< the operand at the reduce axes
  Expr here();          ///< the operand at the result's coordinates
  Expr count(DType dtype) const;
};

/// Opens a row stage: domain is the value's shape, reduce are `axes` (ascending, not negative).
Row open_row(Lowering& lowering, const Value* value, const std::vector<int64_t>& axes);

}  // namespace opfuse
