// What the skeletons of tensor cores have in common: tiles of both operands that are filled by copies or element by
// element, and results that leave through staging rows.
#pragma once

#include <optional>

#include "cuda/mma_copies.hpp"
#include "cuda/mma_operands.hpp"
#include "cuda/tile_frame.hpp"
#include "cuda/vector_body.hpp"

namespace opfuse::cuda {

class MmaTiles {
 protected:
  struct Shape {
    int64_t m, n, k, threads;
    bool copy_a, copy_b;
    bool fill_a = true, fill_b = true;  ///< others do not fill them
    const char* fillers = "kBlock";     ///< how many threads do, those from number 0 on
  };
  MmaTiles(Kernel& k, const Shape& shape);

  Kernel& k_;
  StageText s_;
  TileView view_;
  TileFrame frame_{s_, view_};
  bool bf16_, copies_, fill_a_, fill_b_;
  std::string fillers_;
  int64_t threads_;  ///< that fill
  std::optional<MmaCopies> a_, b_;

  /// What is known before the loop, and `fill`: step t into a stage.
  void declare_fill(const StageText::Point& point);
  /// The `vector` results from (row, column) on, texts of their coordinates, as staging[row][column] has their sums.
  void store(const StageText::Point& outside, const std::string& row, const std::string& column, int64_t vector,
             const StoreVector& store = {});

 private:
  void fill_elements(const std::string& tile, const Expr& value, const std::vector<int>& axes, const std::string& name,
                     const std::string& size_name, const Dim& extent, int64_t size, const StageText::Point& outside);
  std::string bits_of(const Expr& value, const StageText::Point& point);
};

}  // namespace opfuse::cuda
