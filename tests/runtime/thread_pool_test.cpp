// Fork and join: every part once, in order of workers, whatever sleeps.
#include "runtime/thread_pool.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <numeric>

#include "base/sanitizers.hpp"
#include "testing/own_process.hpp"

namespace opfuse {
namespace {

struct Counts {
  std::vector<std::atomic<int>> runs;
  std::atomic<int> bad_workers{0};
  int workers;
  Counts(size_t parts, int w) : runs(parts), workers(w) {}
};

void count_part(void* context, int64_t part, int worker) {
  Counts& counts = *static_cast<Counts*>(context);
  counts.runs[static_cast<size_t>(part)].fetch_add(1);
  if (worker < 0 || worker >= counts.workers) counts.bad_workers.fetch_add(1);
}

class EveryPoolSize : public testing::TestWithParam<int> {};

TEST_P(EveryPoolSize, RunsEachPartExactlyOnceOverManyJobs) {
  ThreadPool pool(GetParam(), 50);
  ASSERT_EQ(pool.workers(), GetParam());
  for (int job = 0; job < 2000; ++job) {
    Counts counts(static_cast<size_t>(1 + job % 37), pool.workers());
    pool.run(static_cast<int64_t>(counts.runs.size()), count_part, &counts);
    for (const auto& runs : counts.runs) ASSERT_EQ(runs.load(), 1) << "job " << job;
    ASSERT_EQ(counts.bad_workers.load(), 0);
  }
}

TEST_P(EveryPoolSize, WakesWorkersThatWentToSleep) {
  ThreadPool pool(GetParam(), 10);
  for (int job = 0; job < 5; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Counts counts(64, pool.workers());
    pool.run(64, count_part, &counts);
    for (const auto& runs : counts.runs) ASSERT_EQ(runs.load(), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, EveryPoolSize, testing::Values(1, 2, 3, 8));

TEST(ThreadPool, MorePartsThanATicketCountsRunOnceEach) {
  ThreadPool pool(3, 50);
  Counts counts(3 << 20, pool.workers());
  pool.run(static_cast<int64_t>(counts.runs.size()), count_part, &counts);
  for (const auto& runs : counts.runs) ASSERT_EQ(runs.load(), 1);
}

TEST(ThreadPool, PartsOfAWorkerAreNeighbours) {
  ThreadPool pool(2, 50);
  std::vector<int> worker_of(64, -1);
  for (int round = 0; round < 200; ++round) {
    pool.run(
        64,
        [](void* context, int64_t part, int worker) {
          (*static_cast<std::vector<int>*>(context))[static_cast<size_t>(part)] = worker;
        },
        &worker_of);
    int changes = 0;
    for (size_t i = 1; i < worker_of.size(); ++i) changes += worker_of[i] != worker_of[i - 1];
    ASSERT_LE(changes, 2) << "round " << round;  // own front, the other's middle, stolen back
  }
}

TEST(ThreadPool, IsABarrierWritesOfPartsAreVisibleAfterRun) {
  ThreadPool pool(4, 50);
  std::vector<int64_t> data(1000, 0);
  for (int round = 1; round <= 500; ++round) {
    pool.run(
        10,
        [](void* context, int64_t part, int) {
          auto& values = *static_cast<std::vector<int64_t>*>(context);
          for (size_t i = static_cast<size_t>(part) * 100; i < static_cast<size_t>(part + 1) * 100; ++i) values[i] += 1;
        },
        &data);
    ASSERT_EQ(std::accumulate(data.begin(), data.end(), int64_t{0}), int64_t{1000} * round);
  }
}

TEST(ThreadPool, RunsNothingForZeroParts) {
  ThreadPool pool(2, 50);
  pool.run(
      0, [](void*, int64_t, int) { FAIL() << "a part ran"; }, nullptr);
}

TEST(ThreadPool, RefusesZeroThreads) { EXPECT_THROW(make_thread_pool(0), Error); }

/// Those that were started end before the error leaves; threads that nobody joins end the process.
TEST(ThreadPool, SaysHowManyThreadsTheSystemStarts) {
#if defined(OPFUSE_ASAN) || defined(OPFUSE_TSAN)
  GTEST_SKIP() << "shadow memory needs more address space than the limit leaves";
#endif
  const test::Ended ended = test::in_own_process(
      [] {
        std::ifstream statm("/proc/self/statm");
        rlim_t pages = 0;
        statm >> pages;
        const rlim_t bytes = pages * static_cast<rlim_t>(getpagesize()) + (rlim_t{96} << 20);  // some ten stacks
        const rlimit limit{bytes, bytes};
        setrlimit(RLIMIT_AS, &limit);
        try {
          make_thread_pool(1000);
        } catch (const Error& error) {
          return error.diagnostic().code + " " + error.diagnostic().message;
        }
        return std::string("started");
      },
      20);
  ASSERT_TRUE(ended.complete()) << "signal " << ended.signal;
  EXPECT_TRUE(ended.text.starts_with("E0401 1000 threads were asked for")) << ended.text;
}

}  // namespace
}  // namespace opfuse
