// How the rows of a product are cut where their reduction is in the same kernel, and what that loses against a product
// that is cut along its columns too.
#pragma once

#include "cpu/product_rows/product_rows_view.hpp"
#include "kernel/spec.hpp"

namespace opfuse {

/// Bands of whole rows; parts are so many of them.
struct ProductRowsCut {
  int64_t band = 1;         ///< rows
  int64_t parts_p = 1;      ///< pieces of the bands of an image
  int64_t parts_batch = 1;  ///< pieces of the images
  int64_t parts = 1;        ///< of the launch; of an open number of rows one has one part
};
ProductRowsCut cut_product_rows(const Region& region, const ProductRowsView& view, const TargetInfo& target);

/// Rows that a part may have in scratch: a share of L2.
int64_t most_rows_in_scratch(const ProductRowsView& view, const TargetInfo& target);

/// Of one core: instructions of the two stages, and the time of both with what they wait for.
struct ProductRowsCycles {
  double product = 0, rows = 0;
  double time = 0;
};
/// Cycles of one core that one launch loses against two, besides what their groups cost: fewer parts than threads,
/// weights that come from beyond L2 for each band, tiles that end with it, less what a product saves that leaves L2.
/// `region`: one that is generated; an open extent counts as 1.
double product_rows_lost(const Region& region, const ProductRowsCycles& cycles, const TargetInfo& target);

}  // namespace opfuse
