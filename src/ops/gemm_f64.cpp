// Goto's scheme. The left factor is packed into panels of 8 rows, the right factor into panels of 24 columns; a block
// of kDepth x kBlockColumns of the right factor stays in L2 while the panels of the left factor stream past it. The
// register tile is 8 x 24: with 512-bit vectors 24 accumulators, 3 columns vectors and a broadcast memory operand.
//
//   for column block, for depth block: pack B            (private to the thread)
//     for row panel, for column panel: C tile += A panel * B panel
//
// The same source is compiled for AVX-512, AVX2 and the baseline (a function may inline one of fewer features); the
// machine chooses at the first call.
#include "ops/gemm_f64.hpp"

#include <algorithm>
#include <cstddef>

#include "base/parallel.hpp"

namespace opfuse {
namespace {

constexpr int64_t kRows = PackedRows::kRowTile;
constexpr int64_t kColumns = kColumnTile;
constexpr int64_t kDepth = 192;                  // an A panel (12 KiB) and a B panel (36 KiB) share L1
constexpr int64_t kBlockColumns = 8 * kColumns;  // a B block is 288 KiB: in L2

/// Tile of kR rows x kV vectors of kW doubles from row `a`, columns `b` of their panels, into t[row * kColumns +
/// column].
template <int kW, int kR, int kV>
__attribute__((always_inline)) inline void tile(int64_t depth, const double* a, const double* b, double* t) {
  typedef double Vec __attribute__((vector_size(kW * 8), aligned(8), may_alias));
  Vec acc[kR][kV] = {};
  for (int64_t k = 0; k < depth; ++k, a += kRows, b += kColumns) {
    Vec column[kV];
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) column[v] = *reinterpret_cast<const Vec*>(b + v * kW);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kV; ++v) acc[r][v] += column[v] * a[r];
  }
  for (int r = 0; r < kR; ++r)
    for (int v = 0; v < kV; ++v) *reinterpret_cast<Vec*>(t + r * kColumns + v * kW) = acc[r][v];
}

/// A full row panel times `columns` of a column panel.
using Kernel = void (*)(int64_t depth, int64_t columns, const double* a, const double* b, double* t);

__attribute__((target("avx512f"))) void kernel_avx512(int64_t depth, int64_t columns, const double* a, const double* b,
                                                      double* t) {
  if (columns > 16) return tile<8, 8, 3>(depth, a, b, t);
  if (columns > 8) return tile<8, 8, 2>(depth, a, b, t);
  tile<8, 8, 1>(depth, a, b, t);
}

__attribute__((target("avx2,fma"))) void kernel_avx2(int64_t depth, int64_t columns, const double* a, const double* b,
                                                     double* t) {
  for (int64_t r = 0; r < kRows; r += 4)
    for (int64_t j = 0; j < columns; j += 12) {
      if (columns - j > 4)
        tile<4, 4, 3>(depth, a + r, b + j, t + r * kColumns + j);
      else
        tile<4, 4, 1>(depth, a + r, b + j, t + r * kColumns + j);
    }
}

void kernel_baseline(int64_t depth, int64_t columns, const double* a, const double* b, double* t) {
  for (int64_t r = 0; r < kRows; r += 4)
    for (int64_t j = 0; j < columns; j += 6) tile<2, 4, 3>(depth, a + r, b + j, t + r * kColumns + j);
}

Kernel choose_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return kernel_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kernel_avx2;
#endif
  return kernel_baseline;
}

void add_tile(const double* t, int64_t rows, int64_t columns, double* c, int64_t ldc) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) c[r * ldc + j] += t[r * kColumns + j];
}

}  // namespace

PackedRows::PackedRows(int64_t rows, int64_t depth, MatrixView a)
    : rows_(rows), depth_(depth), packed_(size_t((rows + kRows - 1) / kRows * kRows * depth)) {
  for (int64_t row = 0; row < rows; row += kRows) {
    double* to = packed_.data() + row * depth;
    const int64_t count = std::min(kRows, rows - row);
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t r = 0; r < count; ++r) to[k * kRows + r] = a(row + r, k);
  }
}

void multiply_add(const PackedRows& a, int64_t first_row, int64_t end_row, const PackColumns& b, int64_t first_column,
                  int64_t end_column, double* c, int64_t ldc) {
  static const Kernel kernel = choose_kernel();
  const int64_t widest = std::min(kBlockColumns, (end_column - first_column + kColumns - 1) / kColumns * kColumns);
  std::vector<double> block(size_t(widest * std::min(kDepth, a.depth())));
  alignas(64) double t[kRows * kColumns];
  for (int64_t j0 = first_column; j0 < end_column; j0 += kBlockColumns) {
    const int64_t j1 = std::min(end_column, j0 + kBlockColumns);
    for (int64_t k0 = 0; k0 < a.depth(); k0 += kDepth) {
      const int64_t depth = std::min(kDepth, a.depth() - k0);
      for (int64_t j = j0; j < j1; j += kColumns)
        b(k0, depth, j, std::min(kColumns, j1 - j), block.data() + (j - j0) * depth);
      for (int64_t i = first_row; i < end_row; i += kRows)
        for (int64_t j = j0; j < j1; j += kColumns) {
          kernel(depth, std::min(kColumns, j1 - j), a.panel(i, k0), block.data() + (j - j0) * depth, t);
          add_tile(t, std::min(kRows, end_row - i), std::min(kColumns, j1 - j), c + i * ldc + j, ldc);
        }
    }
  }
}

void gemm_f64(int64_t m, int64_t n, int64_t k, MatrixView a, MatrixView b, double* c, int64_t ldc, int threads) {
  if (m <= 0 || n <= 0 || k <= 0) return;
  const PackedRows left(m, k, a);
  const PackColumns pack = [&](int64_t k0, int64_t depth, int64_t j0, int64_t columns, double* to) {
    for (int64_t i = 0; i < depth; ++i)
      for (int64_t j = 0; j < columns; ++j) to[i * kColumns + j] = b(k0 + i, j0 + j);
  };
  // Small products are not worth starting threads for.
  if (m * n * k < (int64_t{1} << 18)) threads = 1;
  const int64_t chunk = std::min(kBlockColumns, std::max(kColumns, (n / 8 + kColumns - 1) / kColumns * kColumns));
  parallel_for((n + chunk - 1) / chunk,
               [&](int64_t i) { multiply_add(left, 0, m, pack, i * chunk, std::min(n, (i + 1) * chunk), c, ldc); },
               threads);
}

}  // namespace opfuse
