// Tiles of operands and results as boxes that the copy engine moves.
#pragma once

#include <optional>

#include "cuda/tile_view.hpp"
#include "kernel/spec.hpp"

namespace opfuse::cuda {

/// An operand as the copy engine sees it, and where the box of a tile begins.
struct OperandMap {
  /// A coordinate: the tile's first row, the step's first of all summed elements, or the sum of what axes stand at.
  enum class Along { axes, rows, depth };
  struct Coordinate {
    Along along = Along::axes;
    Dim offset = 0;
    std::vector<std::pair<int, int64_t>> terms = {};   ///< axis, times so much
    std::vector<std::pair<int, int64_t>> window = {};  ///< of an image: the same for the element of the window
    std::optional<IndexTerm> part = {};                ///< of rows of heads: a part of an axis, without its coefficient
  };
  TensorMap map;
  std::vector<Coordinate> at;  ///< by the map's dimensions
};

/// `rows`: those of `axes` by 128 bytes of the last summed axis; nullopt: they are no box.
std::optional<OperandMap> map_of_operand(const Region& region, const std::vector<ParamLayout>& layouts,
                                         const TileView& view, const Expr& operand, const std::vector<int>& axes,
                                         int64_t rows);
/// The same by 128 bytes of all summed axes together, where they nest.
std::optional<OperandMap> map_of_flat_operand(const Region& region, const std::vector<ParamLayout>& layouts,
                                              const TileView& view, const Expr& operand, const std::vector<int>& axes,
                                              int64_t rows);
/// Rows of heads: the axes of a stage that a box runs along, and how many rows it has.
struct RowsOfHead {
  int number, row;
  int64_t height;
};
/// Boxes of 64 numbers of `height` rows of an operand of 16 bits, as it lies; nullopt: they are none.
std::optional<OperandMap> map_of_rows(const Region& region, const std::vector<ParamLayout>& layouts, size_t stage,
                                      const Expr& operand, const RowsOfHead& rows);
/// `rows` by 64 columns of the only result, of 16 bits.
std::optional<OperandMap> map_of_result(const Region& region, const std::vector<ParamLayout>& layouts,
                                        const TileView& view, int64_t rows);

}  // namespace opfuse::cuda
