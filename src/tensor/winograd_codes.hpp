// Winograd's F(m,3) of codes in whole numbers: nothing is rounded, so the sums are those of the direct convolution in
// every bit. The points are 0, +-1 (, +-2) and infinity, whose data matrix is whole; filters are multiplied by their
// common denominator, but the row of infinity by less, which the result matrix has then:
//
//   denominator * y = result * ((filter * g) . (data * d))       denominator 2 of m = 2, 24 of m = 4
//
// |data * d| <= 100 * 255 and |filter * g| <= 144 * 128 fit i16. Their products are added up modulo 2^32. What comes
// out is 2^k odd y modulo 2^32: times the inverse of `odd` it is 2^k y, and y is what an arithmetic shift leaves, as
// long as |2^k y| < 2^31.
#pragma once

#include "tensor/layout.hpp"
#include "tensor/winograd.hpp"

namespace opfuse::winograd {

/// Filters of codes lie in pairs of channels, each number an i16 in two bytes of its own:
///   [O/block][points_h][points_w][C/2][block][2][2 bytes]
bool holds_codes(const Layout& layout);

struct CodesForm {
  std::vector<double> pairs;        ///< points +-p
  double finite = 1, infinite = 1;  ///< factors of the filter's rows
  int64_t infinite_result = 1;      ///< of the result's column
  int64_t odd = 1, shift = 0;       ///< denominator = odd << shift
};
const CodesForm& codes_form(int64_t tile);

/// odd * inverse = 1 modulo 2^32.
uint32_t inverse_of(uint32_t odd);

/// Nothing, or why a layer is not computed so: 2^k y of some output leaves i32 for u8 data (i8 + 128 too).
/// `filters`: i8, [O,C,3,3].
std::string codes_bound(const Tensor& filters, int64_t tile_h, int64_t tile_w);

/// i8 [O,C,3,3] -> i16 [O,C,tile_h+2,tile_w+2].
Tensor transform_codes(const Tensor& filters, int64_t tile_h, int64_t tile_w);

}  // namespace opfuse::winograd
