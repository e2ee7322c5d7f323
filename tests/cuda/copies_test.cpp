// Copies of tiles to shared memory: each 16 bytes by one thread, eight threads to all banks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "cuda/mma_copies.hpp"

namespace opfuse::test {
namespace {

using cuda::CopyShape;

int64_t row_of(const CopyShape& shape, int64_t thread) {
  const int64_t order = thread / shape.columns;
  const auto bits = cuda::row_bits(shape);
  int64_t row = order / 8 * 8;
  for (size_t b = 0; b < bits.size(); ++b) row += (order >> b) % 2 << bits[b];
  return row;
}

/// What the helper `place` of the kernels computes.
int64_t place(int64_t chunks, int64_t row, int64_t chunk) {
  const int64_t period = std::min<int64_t>(chunks, 8);
  return row * chunks + (chunk ^ row * period / 8 % period);
}

TEST(Copies, eight_threads_write_to_all_banks_and_all_threads_to_all_of_a_tile) {
  for (int64_t chunks : {4, 8, 16})
    for (bool known : {false, true})
      for (int64_t threads : {64, 128, 256}) {
        const CopyShape shape = cuda::copy_shape(threads, chunks * 8, chunks, known, 128, 64);
        SCOPED_TRACE(fmt::format("{} chunks, {} threads, {} columns", chunks, threads, shape.columns));
        EXPECT_EQ(shape.columns < chunks, known && threads / (chunks / 2) <= 64) << "64 rows for all threads";
        std::set<int64_t> all;
        for (int64_t g = 0; g < shape.together(); ++g)
          for (int64_t first = 0; first < threads; first += 8) {
            std::set<int64_t> banks;  // of 16 bytes
            for (int64_t t = first; t < first + 8; ++t) {
              const int64_t at = place(chunks, row_of(shape, t), t % shape.columns + g * shape.columns);
              banks.insert(at % 8);
              all.insert(at);
            }
            EXPECT_EQ(banks.size(), 8u);
          }
        EXPECT_EQ(static_cast<int64_t>(all.size()), shape.rows() * chunks);
        EXPECT_LT(*all.rbegin(), shape.rows() * chunks);
      }
}

/// Rows of 64 columns are not fewer than those that threads copy at once.
TEST(Copies, as_few_threads_stand_along_a_row_as_its_tiles_have_rows_for_all) {
  EXPECT_EQ(cuda::copy_shape(64, 32, 4, true, 128, 64).columns, 2);
  EXPECT_EQ(cuda::copy_shape(128, 128, 16, true, 64, 64).columns, 2);
  EXPECT_EQ(cuda::copy_shape(256, 64, 8, true, 128, 64).columns, 4);
  EXPECT_EQ(cuda::copy_shape(384, 64, 8, true, 192, 64).columns, 8) << "96 rows are not among 64";
}

}  // namespace
}  // namespace opfuse::test
