// Hardware counters of this process and the threads it makes, where the system allows reading them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace opfuse {

struct CounterValues {
  double cycles = 0, instructions = 0, cache_references = 0, cache_misses = 0;  ///< of the last-level cache
};

/// Threads that are made while this lives are counted too; those that ran before are not. So make it before the pool.
class HardwareCounters {
 public:
  HardwareCounters();
  ~HardwareCounters();
  HardwareCounters(const HardwareCounters&) = delete;
  HardwareCounters& operator=(const HardwareCounters&) = delete;

  /// Why there are none: "perf_event_open: Permission denied (kernel.perf_event_paranoid is 3)"; empty: there are.
  const std::string& missing() const { return missing_; }
  /// Since the counters were made, scaled where the kernel took turns between them; none where `missing` says why.
  std::optional<CounterValues> read() const;

 private:
  std::vector<int> files_;
  std::string missing_;
};

}  // namespace opfuse
