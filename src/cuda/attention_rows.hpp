// The rows of attention on tensor cores, as fragments have them: four lanes share row lane / 4 of a warp's 16, and the
// one 8 below. Maximum and sum of the exponentials are kept up to date while keys pass.
#pragma once

#include <functional>

#include "cuda/attention_frame.hpp"

namespace opfuse::cuda {

/// Where the numbers of a lane lie: `e` of 0 .. 3 (rows e / 2, columns e % 2) of block `j` of 16 x 8.
struct FragmentTexts {
  using At = std::function<std::string(const std::string& j, const std::string& e)>;
  At score, sum;
  std::string first;  ///< the warp's first row of the block's, "" of one warp
  int64_t rows = 0;   ///< of a block
  int64_t keys = 0;   ///< of a step
};

/// highest, total: before the loop over keys.
void declare_rows(Kernel& k);
/// Scores become what the model does with them: scale, mask, bias. Keys of step t.
void change_scores(AttentionFrame& frame, const FragmentTexts& texts);
/// Scores become exponentials, measured from the highest so far; sums of earlier steps are scaled. Rows that have seen
/// no key yet but masked ones are measured from 0.
void update_rows(Kernel& k, const FragmentTexts& texts);
/// Within the loop over `half` rows: the total of the row, and `factor`.
void finish_rows(AttentionFrame& frame);

/// What a block computes: rows, columns with those behind the last; and how many are stored together.
struct StagedResults {
  int64_t rows, columns, vector;
};
/// Stores staging[row][column], the result of query `m` and column `n`.
void store_staged(AttentionFrame& frame, const Dim& m, const Dim& n, const StagedResults& results);

}  // namespace opfuse::cuda
