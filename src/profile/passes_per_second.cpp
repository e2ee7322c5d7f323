// Threads start each round together; a rate is the sum over threads, the best round counts, because a disturbance only
// ever makes a limit look lower. (The best of each thread by itself would be too high where two threads share a core.)
// Rounds are short: on a shared machine some of them find all processors free. Threads are pinned to the allowed
// processors in order.
#include "profile/passes_per_second.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace opfuse {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void pin_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

double rate_of_round(const RepeatedPass& pass, double seconds) {
  const double start = now_seconds();
  double elapsed = 0;
  int64_t passes = 0;
  do {
    pass();
    ++passes;
    elapsed = now_seconds() - start;
  } while (elapsed < seconds);
  return static_cast<double>(passes) / elapsed;
}

}  // namespace

std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) processors.push_back(i);
  return processors;
}

double passes_per_second(int threads, double seconds, const std::function<RepeatedPass(int)>& make_pass, int rounds) {
  const std::vector<int> processors = allowed_processors();
  std::atomic<int> arrived{0};
  std::vector<double> rates(static_cast<size_t>(rounds * threads));
  const auto work = [&](int thread) {
    if (!processors.empty()) pin_to(processors[static_cast<size_t>(thread) % processors.size()]);
    const RepeatedPass pass = make_pass(thread);
    pass();
    for (int round = 0; round < rounds; ++round) {
      arrived.fetch_add(1);
      while (arrived.load() < threads * (round + 1)) std::this_thread::yield();
      rates[static_cast<size_t>(round * threads + thread)] = rate_of_round(pass, seconds / rounds);
    }
  };
  std::vector<std::thread> pool;
  for (int thread = 0; thread < threads; ++thread) pool.emplace_back(work, thread);
  for (std::thread& thread : pool) thread.join();
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    double sum = 0;
    for (int thread = 0; thread < threads; ++thread) sum += rates[static_cast<size_t>(round * threads + thread)];
    best = std::max(best, sum);
  }
  return best;
}

}  // namespace opfuse
