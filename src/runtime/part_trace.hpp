// Which worker ran which part of which launch, and when: an executor between a context and its pool.
//
//     PartTrace trace(*pool);
//     options.executor = &trace;        context.run() once to warm up
//     trace.start();  context.run();    trace.parts() are those of that run
#pragma once

#include <memory>
#include <vector>

#include "opfuse/runtime.hpp"

namespace opfuse {

struct PartTime {
  int launch = 0;  ///< number in the program that runs
  int worker = 0;
  int64_t part = 0;
  int64_t begin_ns = 0, end_ns = 0;  ///< from start()
};

/// Only for contexts of CPUs, and one at a time. Parts that are recorded cost two looks at the clock each.
class PartTrace final : public Executor {
 public:
  explicit PartTrace(Executor& pool) : pool_(pool), by_worker_(static_cast<size_t>(pool.workers())) {}
  int workers() const override { return pool_.workers(); }
  void run(int64_t parts, PartFunction fn, void* context) override;

  void start();                         ///< forgets what was recorded; the time is 0 from now on
  std::vector<PartTime> parts() const;  ///< since start(), by time

 private:
  struct Call;
  static void run_part(void* call, int64_t part, int worker);
  Executor& pool_;
  int64_t start_ns_ = 0;
  std::vector<std::vector<PartTime>> by_worker_;  ///< each written by its worker alone
};

}  // namespace opfuse
