// Two stages as one kernel: a product of matrices, and a reduction of its rows that alone reads it (softmax, the
// largest column, norms).
//
//   product[b, m, n] = f(sum over k of data(b, m, k) * weights(k, n))     f: bias, scale, mask, any expression
//   result           = rows of it reduced along n, and what is computed of both
//
// A part has whole rows in scratch, a band of them at a time.
#pragma once

#include <string>
#include <variant>

#include "kernel/views.hpp"

namespace opfuse {

struct ProductRowsView {
  ContractionView product;
  int row = 0;          ///< domain axis m of both stages; the axes before it are the batch
  int64_t columns = 0;  ///< extent of n, the axis behind it in stage 0

  /// Floats from a row in scratch to the next: an odd number of lines, so that they do not meet in one set of a cache.
  int64_t row_floats(const TargetInfo& target) const;
  /// Of so many rows.
  int64_t scratch_bytes(int64_t rows, const TargetInfo& target) const { return 4 * rows * row_floats(target); }
};
std::variant<ProductRowsView, std::string> view_product_rows(const Region& region);

/// A contraction, and a row stage behind it: if they are not generated, the reason is view_product_rows'.
bool resembles_product_rows(const Region& region);

}  // namespace opfuse
