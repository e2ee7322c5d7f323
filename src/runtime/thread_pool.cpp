// Every worker owns a contiguous range of a job's parts and takes them from its front; one that has run out takes
// from the back of another's. Neighbouring parts so stay on one core: the weights a part fetches ahead are the ones
// that core needs next, and the rows a layer wrote are read by the core that wrote them. Claiming is a
// compare-exchange on (epoch, first, end), so a worker that wakes late can neither skip a part of a newer job nor
// run one of an older job twice.
// The caller finishes without waiting for workers that never woke: it waits for parts, not for threads.
// A region lasts 10-100 us, so waits spin first (bounded), then sleep on a futex (std::atomic::wait).
#include "runtime/thread_pool.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

#include "base/fail.hpp"
#include "base/parallel.hpp"

namespace opfuse {
namespace {

constexpr int kGrainBits = 20;
constexpr uint64_t kGrainMask = (uint64_t{1} << kGrainBits) - 1;
constexpr uint64_t kEpochMask = (uint64_t{1} << (64 - 2 * kGrainBits)) - 1;

uint64_t pack(uint64_t epoch, uint64_t first, uint64_t end) {
  return epoch << 2 * kGrainBits | first << kGrainBits | end;
}

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

ThreadPool::ThreadPool(int threads, int spin_microseconds)
    : ranges_(static_cast<size_t>(std::max(threads, 1))), spin_microseconds_(spin_microseconds) {
  OPFUSE_CHECK(threads >= 1, "a pool of {} threads", threads);
  try {
    for (int i = 1; i < threads; ++i) threads_.emplace_back([this, i] { worker_loop(i); });
  } catch (const std::system_error& error) {
    const size_t started = threads_.size() + 1;
    stop();  // no destructor runs here, and threads that nobody joins end the process
    throw fail(E::bad_option, "{} threads were asked for, and the system starts no more than {}: {}", threads, started,
               error.what())
        .hint(fmt::format("this process may use {}", default_threads()));
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
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
  const uint64_t epoch = (epoch_.load(std::memory_order_relaxed) + 1) & kEpochMask;
  Job& job = jobs_[epoch & 1];
  const int64_t grain = (parts - 1) / static_cast<int64_t>(kGrainMask) + 1, grains = (parts + grain - 1) / grain;
  job.fn.store(fn, std::memory_order_relaxed);
  job.context.store(context, std::memory_order_relaxed);
  job.parts.store(parts, std::memory_order_relaxed);
  job.grain.store(grain, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  for (int64_t w = 0; w < workers(); ++w)
    ranges_[static_cast<size_t>(w)].word.store(
        pack(epoch, static_cast<uint64_t>(grains * w / workers()), static_cast<uint64_t>(grains * (w + 1) / workers())),
        std::memory_order_release);
  epoch_.store(epoch, std::memory_order_seq_cst);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) wake_.notify_all();
  work_on(epoch, 0);
  const auto finished = [&] { return done_.load(std::memory_order_acquire) == parts; };
  while (!spin_until(finished, 1000)) std::this_thread::yield();
}

/// A grain of `owner`'s range: the first one, or the last when it is stolen.
std::optional<int64_t> ThreadPool::claim(uint64_t epoch, int owner, bool steal) {
  std::atomic<uint64_t>& range = ranges_[static_cast<size_t>(owner)].word;
  uint64_t word = range.load(std::memory_order_acquire);
  for (;;) {
    const uint64_t first = word >> kGrainBits & kGrainMask, end = word & kGrainMask;
    if (word >> 2 * kGrainBits != epoch || first >= end) return std::nullopt;
    const uint64_t left = steal ? pack(epoch, first, end - 1) : pack(epoch, first + 1, end);
    if (range.compare_exchange_weak(word, left, std::memory_order_acq_rel))
      return static_cast<int64_t>(steal ? end - 1 : first);
  }
}

void ThreadPool::work_on(uint64_t epoch, int worker) {
  for (int i = 0; i < workers(); ++i) {
    const int owner = (worker + i) % workers();
    while (const auto claimed = claim(epoch, owner, i > 0)) {
      // stable from here on: the job cannot end before this grain is counted
      Job& job = jobs_[epoch & 1];
      const int64_t grain = job.grain.load(std::memory_order_relaxed);
      const int64_t begin = *claimed * grain;
      const int64_t end = std::min(job.parts.load(std::memory_order_relaxed), begin + grain);
      const PartFunction fn = job.fn.load(std::memory_order_relaxed);
      void* const context = job.context.load(std::memory_order_relaxed);
      for (int64_t part = begin; part < end; ++part) fn(context, part, worker);
      done_.fetch_add(end - begin, std::memory_order_release);
    }
  }
}

uint64_t ThreadPool::wait_for_change(uint64_t seen_epoch) {
  const auto changed = [&] {
    return epoch_.load(std::memory_order_acquire) != seen_epoch || stop_.load(std::memory_order_acquire);
  };
  while (!spin_until(changed, spin_microseconds_)) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t wake = wake_.load(std::memory_order_seq_cst);
    if (!changed()) wake_.wait(wake, std::memory_order_seq_cst);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }
  return epoch_.load(std::memory_order_acquire);
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
  try {
    return std::make_unique<ThreadPool>(threads, spin_microseconds);
  } catch (const std::bad_alloc&) {
    throw fail(E::out_of_memory, "memory ran out for a pool of {} threads", threads)
        .hint(fmt::format("this process may use {}", default_threads()));
  }
}

int default_threads() { return available_threads(); }

}  // namespace opfuse
