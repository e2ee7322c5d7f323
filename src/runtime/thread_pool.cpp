// The pool hands out parts through one 64-bit ticket (epoch, next part). Claiming is a compare-exchange,
// so a worker that wakes late can neither skip a part of a newer job nor run one of an older job twice.
// The caller finishes without waiting for workers that never woke: it waits for parts, not for threads.
// A region lasts 10-100 us, so waits spin first (bounded), then sleep on a futex (std::atomic::wait).
#include "runtime/thread_pool.hpp"

#include <chrono>

#include "base/fail.hpp"
#include "base/parallel.hpp"

namespace opfuse {
namespace {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Spins until done() or the bound is over; looks at the clock only every 64 pauses.
template <class Done>
bool spin_until(Done done, int microseconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      pause();
    }
    if (std::chrono::steady_clock::now() >= deadline) return done();
  }
}

}  // namespace

ThreadPool::ThreadPool(int threads, int spin_microseconds) : spin_microseconds_(spin_microseconds) {
  OPFUSE_CHECK(threads >= 1, "a pool of {} threads", threads);
  for (int i = 1; i < threads; ++i) threads_.emplace_back([this, i] { worker_loop(i); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_release);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(int64_t parts, PartFunction fn, void* context) {
  if (parts <= 0) return;
  if (parts == 1 || threads_.empty()) {
    for (int64_t part = 0; part < parts; ++part) fn(context, part, 0);
    return;
  }
  const uint64_t epoch = (ticket_.load(std::memory_order_relaxed) >> kPartBits) + 1;
  Job& job = jobs_[epoch & 1];
  job.fn.store(fn, std::memory_order_relaxed);
  job.context.store(context, std::memory_order_relaxed);
  job.parts.store(parts, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  ticket_.store(epoch << kPartBits, std::memory_order_seq_cst);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) wake_.notify_all();
  work_on(epoch, 0);
  const auto finished = [&] { return done_.load(std::memory_order_acquire) == parts; };
  while (!spin_until(finished, 1000)) std::this_thread::yield();
}

bool ThreadPool::work_on(uint64_t epoch, int worker) {
  Job& job = jobs_[epoch & 1];
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  bool worked = false;
  while (ticket >> kPartBits == epoch) {
    const int64_t parts = job.parts.load(std::memory_order_relaxed);
    const PartFunction fn = job.fn.load(std::memory_order_relaxed);
    void* const context = job.context.load(std::memory_order_relaxed);
    const int64_t part = static_cast<int64_t>(ticket & ((uint64_t{1} << kPartBits) - 1));
    if (part >= parts) break;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
    fn(context, part, worker);
    done_.fetch_add(1, std::memory_order_release);
    worked = true;
    ticket = ticket_.load(std::memory_order_acquire);
  }
  return worked;
}

uint64_t ThreadPool::wait_for_change(uint64_t seen_epoch) {
  const auto changed = [&] {
    return ticket_.load(std::memory_order_acquire) >> kPartBits != seen_epoch || stop_.load(std::memory_order_acquire);
  };
  while (!spin_until(changed, spin_microseconds_)) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t wake = wake_.load(std::memory_order_seq_cst);
    if (!changed()) wake_.wait(wake, std::memory_order_seq_cst);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }
  return ticket_.load(std::memory_order_acquire) >> kPartBits;
}

void ThreadPool::worker_loop(int worker) {
  uint64_t epoch = 0;
  for (;;) {
    epoch = wait_for_change(epoch);
    if (stop_.load(std::memory_order_acquire)) return;
    work_on(epoch, worker);
  }
}

std::unique_ptr<Executor> make_thread_pool(int threads, int spin_microseconds) {
  if (threads < 1) throw fail(E::bad_option, "a thread pool needs at least 1 thread, got {}", threads);
  return std::make_unique<ThreadPool>(threads, spin_microseconds);
}

int default_threads() { return available_threads(); }

}  // namespace opfuse
