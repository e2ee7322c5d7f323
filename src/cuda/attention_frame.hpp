// What the kernels of attention have in common: a block stands for some queries of one head, and keys pass it step by
// step. Scores stay in the kernel: the maximum of a row and the sum of its exponentials are kept up to date.
#pragma once

#include "cuda/stage.hpp"
#include "kernel/attention_view.hpp"

namespace opfuse::cuda {

struct AttentionFrame {
  explicit AttentionFrame(Kernel& kernel);

  Kernel& k;
  AttentionView view;
  StageText scores, context;  ///< the first and the last stage
  Dim queries, keys;          ///< how many there are
  int64_t depth, columns;     ///< of a query and a key, of a value
  Env batch;                  ///< where this block stands, along the axes before the rows

  /// Declares m0, the first of `rows` queries of this block, and the batch's coordinates; sets the grid.
  void place(int64_t rows);
  /// Places in the stages of scores and of results.
  StageText::Point score_at(const Dim& row, const Dim& key, const Dim& depth) const;
  StageText::Point result_at(const Dim& row, const Dim& column, const Dim& key) const;

  /// Which scores are there, of `rows` queries of a block and `keys_of_step` keys; "": all. What reads nothing may have
  /// rows behind the last query.
  std::string guard_of_score(const Dim& row, const Dim& key, int64_t rows, int64_t keys_of_step) const;
  /// Declares `name`, the score of a row and a key whose product is `product`; minus infinity behind the last key.
  void declare_score(const std::string& name, const Dim& row, const Dim& key, const std::string& product, int64_t rows,
                     int64_t keys_of_step);
  /// Of a row, by its maximum and the sum of its exponentials: what results are multiplied with.
  std::string factor(const std::string& highest, const std::string& total) const;
  /// A result by its sum and its row's factor.
  std::string result(const std::string& sum, const std::string& factor) const;
  /// "(", x, ") < size", where positions up to the next multiple of `step` are taken; empty where there are none
  /// behind.
  std::string within(const Dim& at, const Dim& size, int64_t step) const;
};

}  // namespace opfuse::cuda
