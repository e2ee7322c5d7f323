// Loops over several threads, and hashes that other machines agree with.
#include "base/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "base/hash.hpp"

namespace opfuse {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnce) {
  std::vector<std::atomic<int>> seen(1000);
  parallel_for(
      1000, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; }, 4);
  for (auto& count : seen) EXPECT_EQ(count, 1);
  parallel_for(0, [](int64_t) { FAIL(); });
}

TEST(ParallelFor, RethrowsTheFirstException) {
  EXPECT_THROW(parallel_for(
                   100,
                   [](int64_t i) {
                     if (i == 57) throw std::runtime_error("57");
                   },
                   3),
               std::runtime_error);
}

TEST(AvailableThreads, IsAtLeastOne) { EXPECT_GE(available_threads(), 1); }

TEST(Hash, IsStableAcrossMachines) {
  EXPECT_EQ(hash_text("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(hash_text("a"), hash_text("b"));
}

}  // namespace
}  // namespace opfuse
