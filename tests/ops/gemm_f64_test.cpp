// The blocked product against three plain loops, on shapes around every blocking boundary.
#include "ops/gemm_f64.hpp"

#include "ops/sample_tensors.hpp"

namespace opfuse {
namespace {

std::vector<double> plain(int64_t m, int64_t n, int64_t k, MatrixView a, MatrixView b) {
  std::vector<double> c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) c[static_cast<size_t>(i * n + j)] += a(i, l) * b(l, j);
  return c;
}

void check(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b, int threads) {
  SCOPED_TRACE(fmt::format("m={} n={} k={} transA={} transB={} threads={}", m, n, k, trans_a, trans_b, threads));
  const Tensor a = random_tensor({m, k}, 1), b = random_tensor({k, n}, 2);
  const auto* pa = static_cast<const double*>(a.data());
  const auto* pb = static_cast<const double*>(b.data());
  const MatrixView left = trans_a ? MatrixView{pa, 1, m} : MatrixView{pa, k, 1};
  const MatrixView right = trans_b ? MatrixView{pb, 1, k} : MatrixView{pb, n, 1};
  const int64_t ldc = n + 3;
  std::vector<double> c(static_cast<size_t>(m * ldc), 0.5);
  gemm_f64(m, n, k, left, right, c.data(), ldc, threads);
  const std::vector<double> want = plain(m, n, k, left, right);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j)
      ASSERT_NEAR(c[static_cast<size_t>(i * ldc + j)], 0.5 + want[static_cast<size_t>(i * n + j)], 1e-11);
    for (int64_t j = n; j < ldc; ++j) ASSERT_EQ(c[static_cast<size_t>(i * ldc + j)], 0.5) << "wrote past a row";
  }
}

TEST(GemmF64, EqualsPlainLoopsOnOddShapes) {
  for (int64_t m : {1, 7, 8, 9, 17})
    for (int64_t n : {1, 8, 9, 16, 23, 24, 25, 49, 193})
      for (int64_t k : {1, 5, 191, 192, 193, 400}) check(m, n, k, false, false, 1);
}

TEST(GemmF64, ReadsTransposedOperands) {
  for (bool a : {false, true})
    for (bool b : {false, true}) check(13, 61, 201, a, b, 2);
}

TEST(GemmF64, GivesTheSameBitsForAnyNumberOfThreads) {
  const int64_t m = 65, n = 700, k = 300;
  const Tensor a = random_tensor({m, k}, 3), b = random_tensor({k, n}, 4);
  const MatrixView left{static_cast<const double*>(a.data()), k, 1}, right{static_cast<const double*>(b.data()), n, 1};
  std::vector<double> one(static_cast<size_t>(m * n)), four(one);
  gemm_f64(m, n, k, left, right, one.data(), n, 1);
  gemm_f64(m, n, k, left, right, four.data(), n, 4);
  EXPECT_EQ(one, four);
}

TEST(GemmF64, LeavesTheResultAloneWhenTheDepthIsZero) {
  std::vector<double> c = {1, 2};
  gemm_f64(1, 2, 0, {}, {}, c.data(), 2);
  EXPECT_EQ(c, (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace opfuse
