// perf_event_open, one event each with `inherit`: a read then sums over the threads. Where the kernel has fewer
// counters than events it takes turns, and tells for how long each one ran.
#include "profile/counters.hpp"

#include <fmt/core.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace opfuse {
namespace {

constexpr uint64_t kEvents[] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CACHE_REFERENCES,
                                PERF_COUNT_HW_CACHE_MISSES};

int open_event(uint64_t event) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_HARDWARE;
  attr.size = sizeof attr;
  attr.config = event;
  attr.inherit = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

std::string paranoia() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  std::string level;
  return file >> level ? fmt::format(" (kernel.perf_event_paranoid is {})", level) : "";
}

}  // namespace

HardwareCounters::HardwareCounters() {
  for (uint64_t event : kEvents) {
    const int file = open_event(event);
    if (file < 0) {
      missing_ = fmt::format("perf_event_open: {}{}", std::strerror(errno), paranoia());
      return;
    }
    files_.push_back(file);
  }
}

HardwareCounters::~HardwareCounters() {
  for (int file : files_) close(file);
}

std::optional<CounterValues> HardwareCounters::read() const {
  if (!missing_.empty()) return std::nullopt;
  double values[std::size(kEvents)] = {};
  for (size_t i = 0; i < files_.size(); ++i) {
    uint64_t words[3] = {};  // value, time enabled, time running
    if (::read(files_[i], words, sizeof words) != static_cast<ssize_t>(sizeof words) || words[2] == 0)
      return std::nullopt;
    values[i] = static_cast<double>(words[0]) * (static_cast<double>(words[1]) / static_cast<double>(words[2]));
  }
  return CounterValues{values[0], values[1], values[2], values[3]};
}

}  // namespace opfuse
