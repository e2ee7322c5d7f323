// Fork-join pool with microsecond barriers.
#pragma once

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "opfuse/runtime.hpp"

namespace opfuse {

class ThreadPool final : public Executor {
 public:
  ThreadPool(int threads, int spin_microseconds);
  ~ThreadPool() override;
  int workers() const override { return static_cast<int>(threads_.size()) + 1; }
  void run(int64_t parts, PartFunction fn, void* context) override;

 private:
  // A job's fields are atomics because a late worker may read them while the next job is published; it
  // then fails to claim, since the epoch of every range has moved on.
  struct Job {
    std::atomic<PartFunction> fn{nullptr};
    std::atomic<void*> context{nullptr};
    std::atomic<int64_t> parts{0};
    std::atomic<int64_t> grain{1};  ///< parts claimed at once: 1 up to a million parts
  };

  void stop();
  void worker_loop(int worker);
  void work_on(uint64_t epoch, int worker);
  uint64_t wait_for_change(uint64_t seen_epoch);
  std::optional<int64_t> claim(uint64_t epoch, int owner, bool steal);

  /// The unclaimed grains of one worker: epoch << 40 | first << 20 | end.
  struct alignas(64) Range {
    std::atomic<uint64_t> word{0};
  };
  std::vector<Range> ranges_;
  alignas(64) std::atomic<uint64_t> epoch_{0};  ///< of the job in ranges_
  alignas(64) std::atomic<int64_t> done_{0};    ///< finished parts of the current job
  alignas(64) std::atomic<uint32_t> wake_{0};   ///< changes with every job: what sleepers wait on
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  Job jobs_[2];  ///< by parity of the epoch
  int spin_microseconds_;
  std::vector<std::thread> threads_;
};

}  // namespace opfuse
