// Data-parallel loops on short-lived threads: the compiler's loops are milliseconds long, so starting
// threads costs nothing that matters. Indices are handed out one by one; results must not depend on
// which thread ran which index.
#include "base/parallel.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/limits.hpp"

namespace opfuse {

namespace {

int affinity_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

/// "quota period" as in cgroup v2's cpu.max; no limit ("max", -1, unreadable) gives a huge number.
int threads_of(double quota, double period) {
  constexpr int kNoLimit = 1 << 20;
  if (!(quota > 0) || !(period > 0)) return kNoLimit;
  return std::max(1, static_cast<int>(std::min<double>(kNoLimit, std::floor(quota / period + 1e-9))));
}

int quota_v2(const std::string& folder) {
  std::ifstream in(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max") return threads_of(0, 0);
  return threads_of(std::strtod(quota.c_str(), nullptr), period);
}

int quota_v1(const std::string& folder) {
  double quota = -1, period = 0;
  std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
  std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  return threads_of(quota, period);
}

/// The tightest limit of this process's control group and its parents.
int quota_threads() {
  int limit = std::min(quota_v2("/sys/fs/cgroup"), quota_v1("/sys/fs/cgroup/cpu"));
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    const bool cpu = ("," + controllers + ",").find(",cpu,") != std::string::npos;
    if (!v2 && !cpu) continue;
    for (std::string path = line.substr(second + 1); path.size() > 1; path.resize(path.rfind('/'))) {
      limit = std::min(limit, v2 ? quota_v2("/sys/fs/cgroup" + path) : quota_v1("/sys/fs/cgroup/cpu" + path));
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return limit;
}

}  // namespace

int available_threads() {
  static const int threads = std::min(affinity_threads(), quota_threads());
  return threads;
}

void parallel_for(int64_t count, const std::function<void(int64_t)>& body, int threads) {
  if (threads <= 0) threads = available_threads();
  threads = static_cast<int>(std::min<int64_t>(threads, count));
  if (threads <= 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr first;
  std::mutex mutex;
  const Limits& limits = limits_in_force();
  auto work = [&] {
    const LimitScope scope(limits);
    try {
      for (int64_t i = next++; i < count && !failed; i = next++) body(i);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
      failed = true;
    }
  };
  std::vector<std::jthread> helpers;
  for (int t = 1; t < threads; ++t) helpers.emplace_back(work);
  work();
  helpers.clear();  // joins
  if (first) std::rethrow_exception(first);
}

}  // namespace opfuse
