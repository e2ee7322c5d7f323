// The one fp64 matrix product behind the references of convolution, gemm and matmul: blocked, packed, threaded,
// vectorised. Every element is summed in the same order whatever the number of threads or the blocking of m and n.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace opfuse {

/// A strided view of a matrix: element (i, j) is data[i * row_stride + j * col_stride].
struct MatrixView {
  const double* data = nullptr;
  int64_t row_stride = 0, col_stride = 1;
  double operator()(int64_t i, int64_t j) const { return data[i * row_stride + j * col_stride]; }
};

/// The left factor, packed once and shared by many products.
class PackedRows {
 public:
  PackedRows(int64_t rows, int64_t depth, MatrixView a);
  int64_t rows() const { return rows_; }
  int64_t depth() const { return depth_; }
  /// kRowTile rows from `row` (a multiple of kRowTile), depth-major from step k on.
  const double* panel(int64_t row, int64_t k) const { return packed_.data() + row * depth_ + k * kRowTile; }
  static constexpr int64_t kRowTile = 8;

 private:
  int64_t rows_, depth_;
  std::vector<double> packed_;
};

/// Writes the elements (k, j) for k in [k0, k0 + depth), j in [j0, j0 + columns) of the right factor to
/// to[(k - k0) * kColumnTile + (j - j0)]. Called from several threads.
using PackColumns = std::function<void(int64_t k0, int64_t depth, int64_t j0, int64_t columns, double* to)>;
constexpr int64_t kColumnTile = 24;

/// c[i * ldc + j] += sum over k of a(i, k) * b(k, j), for j in [first_column, end_column), on the caller's thread.
void multiply_add(const PackedRows& a, int64_t first_row, int64_t end_row, const PackColumns& b, int64_t first_column,
                  int64_t end_column, double* c, int64_t ldc);

/// c (m x n, rows ldc apart) += a (m x k) * b (k x n), on up to `threads` threads (0: all).
void gemm_f64(int64_t m, int64_t n, int64_t k, MatrixView a, MatrixView b, double* c, int64_t ldc, int threads = 0);

}  // namespace opfuse
