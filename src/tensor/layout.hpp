// How a logical tensor lies in memory: axis order, blocks and strides.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.hpp"

namespace opfuse {

/// One block of an axis: the innermost `factor` indices of `axis` form a dimension of their own.
struct Block {
  int axis = 0;
  int64_t factor = 1;
  bool operator==(const Block&) const = default;
};

/// Axis order plus blocks. Memory is, from the outermost: the axes of `order`, each with extent
/// ceil(size / product of its factors), then the blocks in list order (last is contiguous).
///   NCHW                : order {0,1,2,3}
///   NCHW16c             : order {0,1,2,3}, blocks {{1,16}}          [N][C/16][H][W][16]
///   OIHW -> O/32 I/16 .. : order {0,1,2,3}, blocks {{1,16},{0,32}}   [O/32][I/16][H][W][16i][32o]
/// Filters of a Winograd convolution are transformed before that: their last two axes have tile + 2 points then.
///   OIHW as F(4x4,3x3)   : tiles 4x4, order {0,2,3,1}, blocks {{0,32}} [O/32][6][6][I][32o]
/// Padding lanes of a blocked axis are zero in memory; the kernel that stores the block writes them.
struct Layout {
  std::vector<int> order;
  std::vector<Block> blocks;
  int64_t tile_h = 0, tile_w = 0;  ///< of the Winograd transform F(tile_h x tile_w, 3x3); 0: none
  int64_t pairs = 0;  ///< of codes in pairs (paired_codes.hpp): extra octets of a block, and 1; 0: they are not

  static Layout dense(size_t rank);
  static Layout channels_blocked(size_t rank, int axis, int64_t factor);
  bool is_dense() const;  ///< identity order, no blocks, no transform
  bool is_transformed() const { return tile_h > 0 || pairs > 0; }
  int64_t block_of(int axis) const;  ///< product of the axis's factors, 1 if none
  std::string text() const;          ///< "0123", "0123/1:16", "f4x4:0231/0:32", "p3:0123/1:2,0:16,1:4"
  static Layout parse(std::string_view text);
  bool operator==(const Layout&) const = default;

  /// Extents of the physical dimensions (outer axes in order, then blocks).
  std::vector<Dim> physical_extents(const Shape& shape) const;
  /// Elements a dense buffer of this layout holds, padding lanes included.
  Dim physical_elements(const Shape& shape) const;
};

/// Strides in elements of each physical dimension of `layout` (outer axes in order, then blocks) for a
/// dense buffer. A view of a larger buffer has the larger buffer's strides.
std::vector<Dim> dense_strides(const Layout& layout, const Shape& shape);

/// Reorders a dense row-major tensor into `layout`, zero-filling padding lanes (and back, unless transformed).
Tensor pack(const Tensor& tensor, const Layout& layout);
Tensor unpack(const Tensor& packed, const Layout& layout, const std::vector<int64_t>& sizes);

}  // namespace opfuse
