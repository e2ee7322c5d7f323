#include "driver/known_times.hpp"

#include <fmt/format.h>

#include "base/hash.hpp"
#include "kernel/spec.hpp"
#include "opfuse/runtime.hpp"
#include "profile/probe_machine.hpp"
#include "profile/statistics.hpp"

namespace opfuse {

std::string timing_machine(const TargetInfo& target, int threads) {
  return fmt::format("{}, {}{}, {} threads", processor_name(), target.name, target.fingerprint,
                     threads > 0 ? threads : default_threads());
}

KnownTimes read_times(const std::vector<std::string>& files, const TargetInfo& target, int threads) {
  KnownTimes times{{}, timing_machine(target, threads), files.empty() ? TimingCache::default_file() : files.front()};
  times.cache.merge(TimingCache::read(times.file));
  for (size_t i = 1; i < files.size(); ++i) times.cache.merge(TimingCache::read(files[i]));
  return times;
}

TimingKey launch_key(const Program& program, const Launch& launch, const std::string& machine) {
  std::string layouts;
  for (const ParamLayout& param : kernel_spec(program, launch).layouts) {
    layouts += param.layout.text() + ":";
    for (const Dim& stride : param.strides) layouts += stride.text() + ",";
    layouts += " ";
  }
  return {launch.region.hash().hex(), hash_text(layouts).hex(), machine};
}

Timing timing_of(const std::string& form, const std::vector<double>& nanoseconds, const std::string& generator) {
  Timing t{form, 1e-3 * percentile(nanoseconds, 50), 0, static_cast<int64_t>(nanoseconds.size()), generator};
  if (t.median > 0) t.spread = 0.5e-3 * (percentile(nanoseconds, 75) - percentile(nanoseconds, 25)) / t.median;
  return t;
}

}  // namespace opfuse
