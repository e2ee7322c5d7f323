// Threads start each round together; a rate is the sum over threads, the best round counts, because a disturbance only
// ever makes a limit look lower. (The best of each thread by itself would be too high where two threads share a core.)
// Threads are pinned to the allowed processors in order.
#include "profile/machine_limits.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "profile/limit_loops.hpp"

namespace opfuse {
namespace {

constexpr int kRounds = 40;  // short ones: on a shared machine some of them find all processors free

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) processors.push_back(i);
  return processors;
}

void pin_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// Calls of pass(thread) per second, all threads together.
double passes_per_second(int threads, double seconds, const std::function<void(int)>& pass) {
  const std::vector<int> processors = allowed_processors();
  std::atomic<int> arrived{0};
  std::vector<double> rates(static_cast<size_t>(kRounds * threads));
  const auto work = [&](int thread) {
    if (!processors.empty()) pin_to(processors[static_cast<size_t>(thread) % processors.size()]);
    pass(thread);
    for (int round = 0; round < kRounds; ++round) {
      arrived.fetch_add(1);
      while (arrived.load() < threads * (round + 1)) std::this_thread::yield();
      const double start = now_seconds();
      double elapsed = 0;
      int64_t passes = 0;
      do {
        pass(thread);
        ++passes;
        elapsed = now_seconds() - start;
      } while (elapsed < seconds / kRounds);
      rates[static_cast<size_t>(round * threads + thread)] = static_cast<double>(passes) / elapsed;
    }
  };
  std::vector<std::thread> pool;
  for (int thread = 0; thread < threads; ++thread) pool.emplace_back(work, thread);
  for (std::thread& thread : pool) thread.join();
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    double sum = 0;
    for (int thread = 0; thread < threads; ++thread) sum += rates[static_cast<size_t>(round * threads + thread)];
    best = std::max(best, sum);
  }
  return best;
}

void fma_steps(int vector_bytes, int64_t steps) {
  if (vector_bytes == 64) return limit_loops::fma_512(steps);
  if (vector_bytes == 32) return limit_loops::fma_256(steps);
  limit_loops::multiply_add_128(steps);
}

void read_floats(int vector_bytes, const float* data, int64_t floats) {
  if (vector_bytes == 64) return limit_loops::read_512(data, floats);
  if (vector_bytes == 32) return limit_loops::read_256(data, floats);
  limit_loops::read_128(data, floats);
}

int64_t cache_bytes(int name, int64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

}  // namespace

int widest_vector_bytes() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return 64;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 32 : 16;
}

double measure_fma_gflops(int threads, int vector_bytes, double seconds) {
  if (vector_bytes == 0 || vector_bytes > widest_vector_bytes()) vector_bytes = widest_vector_bytes();
  constexpr int64_t kSteps = 4096;
  const int chains = vector_bytes == 16 ? limit_loops::kChains / 2 : limit_loops::kChains;
  const double flop_per_pass = 2.0 * kSteps * chains * vector_bytes / 4;
  return 1e-9 * flop_per_pass *
         passes_per_second(std::max(1, threads), seconds, [&](int) { fma_steps(vector_bytes, kSteps); });
}

double measure_read_gb_per_s(int threads, int64_t bytes, double seconds) {
  threads = std::max(1, threads);
  const int64_t floats = std::max<int64_t>(64, bytes / threads / 4 / 64 * 64);
  std::vector<std::vector<float>> data(static_cast<size_t>(threads));
  const int width = widest_vector_bytes();
  const double rate = passes_per_second(threads, seconds, [&](int thread) {
    std::vector<float>& mine = data[static_cast<size_t>(thread)];
    if (mine.empty()) mine.assign(static_cast<size_t>(floats), 1.0f);  // first touch on the thread that reads
    const int64_t repeats = std::max<int64_t>(1, (int64_t{1} << 18) / floats);
    for (int64_t i = 0; i < repeats; ++i) read_floats(width, mine.data(), floats);
  });
  const double repeats = static_cast<double>(std::max<int64_t>(1, (int64_t{1} << 18) / floats));
  return 1e-9 * rate * repeats * static_cast<double>(floats) * 4;
}

MachineLimits measure_limits(int threads, int vector_bytes, bool memory) {
  MachineLimits limits;
  limits.threads = std::max(1, threads);
  limits.vector_bytes = vector_bytes == 0 ? widest_vector_bytes() : std::min(vector_bytes, widest_vector_bytes());
  limits.fma_gflops = measure_fma_gflops(limits.threads, limits.vector_bytes);
  if (!memory) return limits;
  const int64_t l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10), l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
  const int64_t l3 = cache_bytes(_SC_LEVEL3_CACHE_SIZE, 32 << 20);
  // (what still counts as this level, the working set it is measured with)
  const std::pair<int64_t, int64_t> levels[] = {
      {l1 * limits.threads, l1 * limits.threads / 2},
      {l2 * limits.threads, l2 * limits.threads / 2},
      {std::max(l3, l2 * limits.threads * 2), std::max(l3 / 2, l2 * limits.threads)}};
  for (const auto& [holds, working_set] : levels)
    limits.reads.push_back({holds, measure_read_gb_per_s(limits.threads, working_set)});
  const int64_t outside = std::max<int64_t>(4 * l3, 128 << 20);
  limits.reads.push_back({outside, measure_read_gb_per_s(limits.threads, outside, 0.1)});
  // A larger level is never faster: what a disturbed measurement of a smaller one says is corrected upwards.
  for (size_t i = limits.reads.size() - 1; i-- > 0;)
    limits.reads[i].gb_per_s = std::max(limits.reads[i].gb_per_s, limits.reads[i + 1].gb_per_s);
  return limits;
}

double MachineLimits::read_gb_per_s(double bytes) const {
  for (const ReadRate& level : reads)
    if (bytes <= static_cast<double>(level.bytes)) return level.gb_per_s;
  return reads.empty() ? 0 : reads.back().gb_per_s;
}

}  // namespace opfuse
