// Matrix registers (AMX): one instruction adds the product of 16 rows of data (pixels) and 16 columns of weights
// (outputs) over 64 bytes of channels. Data and weights lie as for sums of codes and of bf16 products
// (cpu/contraction/codes.hpp).
//
//     sums [16 pixels][16 outputs]   +=   data [16 pixels][step channels] x weights [step / unit][16 outputs][unit]
//
// Eight registers: four of sums (two of pixels x two of outputs), two of data, two of weights.
#pragma once

#include "kernel/spec.hpp"
#include "kernel/views.hpp"

namespace opfuse {

constexpr int64_t kMatrixRows = 16;      ///< pixels of a register
constexpr int64_t kMatrixRowBytes = 64;  ///< channels of a pixel in it; the sums of 16 outputs
constexpr int64_t kMatrixVectors = 2;    ///< of outputs in a tile
constexpr int64_t kMatrixPixels = 32;    ///< in a tile

constexpr int64_t kFewestMatrixPixels = 8;  ///< in a map; of fewer, vectors are as fast

/// The target multiplies matrices of these types.
bool has_matrix_products(const ElementTypes& types, const TargetInfo& target);

/// Input channels that fill a register's row.
int64_t matrix_channels(const ElementTypes& types);

/// So many channels side by side fill half of a register's row or more.
bool fill_matrices(const ElementTypes& types, int64_t channels);

/// Enough pixels for matrices, and a target that has them.
bool may_multiply_matrices(const Stage& stage, const ContractionView& view, const TargetInfo& target);

/// Input channels of a product, where the operands allow matrices at all; 0: they do not. `step`: channels between two
/// taps in the weights.
int64_t matrix_step(const Stage& stage, const ContractionView& view, const ParamLayout& data, int64_t step,
                    const TargetInfo& target);

/// Pixels of a tile in a row of so many.
int64_t matrix_width(int64_t pixels);

/// How the pixels of a tile lie in registers: a row of pixels in several, evenly, or several rows in each, `distance`
/// pixels apart.
struct MatrixTile {
  int64_t width = 1, height = 1;
  int64_t distance = 1;
  int64_t share = 1;  ///< of a row that is cut: pixels of a register
  int64_t rows = 1;   ///< of the tile in a register

  MatrixTile(int64_t width, int64_t height, int64_t distance);
  bool cut() const { return height == 1; }
  /// Of a tile as this one or smaller.
  int64_t registers(int64_t wide, int64_t high) const;
  int64_t first_pixel(int64_t number, int64_t wide) const;
  int64_t pixels_in(int64_t number, int64_t wide, int64_t high) const;  ///< those between rows too
  /// Row of a register, counted through all of them.
  int64_t place_of(int64_t pixel, int64_t wide) const;
};

}  // namespace opfuse
