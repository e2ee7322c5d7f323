// What the skeletons of tensor cores have in common: tiles of both operands that are filled by copies or element by
// element, and results that leave through staging rows.
#pragma once

#include <optional>

#include "cuda/mma_copies.hpp"
#include "cuda/mma_operands.hpp"
#include "cuda/tile_frame.hpp"
#include "cuda/vector_body.hpp"

namespace opfuse::cuda {

/// Numbers that 128 bytes hold: the depth of a step of products of four warps.
inline int64_t depth_of(const Kernel& k) { return 8 * chunk_of(mma_view(k.region, k.layouts()).a.dtype()); }

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
  DType type_;     ///< of the factors
  int64_t chunk_;  ///< of them are 16 bytes
  bool copies_, fill_a_, fill_b_;
  WholeStep step_;  ///< where it is one, a step's chunks are known before the loop
  std::string fillers_;
  CopyShape copy_;  ///< of the threads that fill
  std::optional<MmaCopies> a_, b_;
  std::optional<MmaCopies> gathered_a_, gathered_b_;  ///< whose rows are whole threads': one thread gathers a row
  /// Steps are to be written out: where an element lies is then known when the kernel is compiled.
  bool gathers() const { return gathered_a_ || gathered_b_; }

  /// Depth of one product of a warp or a group, 32 bytes.
  int64_t product_depth() const { return 2 * chunk_; }
  /// What is known before the loop, and `fill`: step t into a stage.
  void declare_fill(const StageText::Point& point);
  /// The `vector` results from (row, column) on, texts of their coordinates, as staging[row][column] has their sums.
  void store(const StageText::Point& outside, const std::string& row, const std::string& column, int64_t vector,
             const StoreVector& store = {});

 private:
  void see_gathered(const Shape& shape);
  void declare_places();
  std::string within_depth();
  WholeStep known_step(const Shape& shape) const;
  void fill_elements(const std::string& tile, const Expr& value, const std::vector<int>& axes, const std::string& name,
                     const std::string& size_name, const Dim& extent, int64_t size, const StageText::Point& outside);
  std::string bits_of(const Expr& value, const StageText::Point& point);
};

}  // namespace opfuse::cuda
