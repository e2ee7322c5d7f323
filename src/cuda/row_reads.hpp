// What the passes of the rows skeleton read along a row, and where its elements wait between passes: every reduction is
// a pass, and so is the computation of results that run along the row.
#pragma once

#include "cuda/row_axes.hpp"

namespace opfuse::cuda {

/// The name of the skeleton.
inline constexpr const char* kRowsName = "rows";

struct RowReads {
  std::vector<int> kept;           ///< reads of the reductions that registers or shared memory may stand in for
  std::vector<int> again;          ///< those of them that more than one pass takes
  std::vector<int> anew;           ///< reads that more than one pass takes and that nothing can stand in for
  int passes = 0;                  ///< most passes that take the same element of an operand
  int64_t bytes = 0;               ///< of one element of all operands `again`
  bool results_run_along = false;  ///< results lie over the same positions as the reduced elements
};
RowReads row_reads(const Stage& stage, const Region& region, const RowAxes& axes);

/// The read `here`, by results, takes the element that `along`, by reductions, takes at the same position.
bool same_element(const Stage& stage, const RowAxes& axes, int here, int along);

/// Shared memory that a block may be given when it is launched, in bytes.
int64_t shared_budget(const TargetInfo& target);

/// How often a kernel of the rows skeleton reads its rows.
struct RowReading {
  std::string text;             ///< "each row is read once, ..."; empty where there are no rows
  bool more_than_once = false;  ///< of some rows at least
};
RowReading row_reading(const Region& region, const std::vector<ParamLayout>& layouts, const Schedule& schedule,
                       const TargetInfo& target);

}  // namespace opfuse::cuda
