// Parts are recorded by the workers that run them, without locks: run() returns after all parts are done.
#include "runtime/part_trace.hpp"

#include <algorithm>

#include "base/now_ns.hpp"
#include "runtime/launch_call.hpp"

namespace opfuse {
struct PartTrace::Call {
  PartTrace* trace;
  PartFunction fn;
  void* context;
  int launch;
};

void PartTrace::run_part(void* call, int64_t part, int worker) {
  const Call& c = *static_cast<const Call*>(call);
  const int64_t begin = now_ns() - c.trace->start_ns_;
  c.fn(c.context, part, worker);
  c.trace->by_worker_[static_cast<size_t>(worker)].push_back(
      {c.launch, worker, part, begin, now_ns() - c.trace->start_ns_});
}

void PartTrace::run(int64_t parts, PartFunction fn, void* context) {
  Call call{this, fn, context, static_cast<int>(static_cast<const LaunchCall*>(context)->launch->launch)};
  pool_.run(parts, run_part, &call);
}

void PartTrace::start() {
  for (std::vector<PartTime>& times : by_worker_) times.clear();
  start_ns_ = now_ns();
}

std::vector<PartTime> PartTrace::parts() const {
  std::vector<PartTime> all;
  for (const std::vector<PartTime>& times : by_worker_) all.insert(all.end(), times.begin(), times.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const PartTime& a, const PartTime& b) { return a.begin_ns < b.begin_ns; });
  return all;
}

}  // namespace opfuse
