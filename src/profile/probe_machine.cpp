// What is measured is what the loops of limit_loops.hpp reach, divided by the clock that dependent additions show: a
// core's multiply-add units, bytes per cycle from L3 and from memory, and what more cores add to the latter. Rates
// beside other work (weights beside multiply-adds, maps between kernels) need kernels and stay those of the target.
#include "profile/probe_machine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "profile/machine_limits.hpp"
#include "target/fields.hpp"

namespace opfuse {
namespace {

constexpr double kSeconds = 0.15;                                    // of each measurement
constexpr int64_t kOutside = 256LL << 20, kMostOutside = 1LL << 30;  // bytes that no cache holds; machines report more

/// Three significant digits: a measurement has no more.
double rounded(double value) {
  if (!(value > 0) || !std::isfinite(value)) return value;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return unit >= 1 ? std::round(value / unit) * unit : std::round(value / unit) / std::round(1 / unit);
}

}  // namespace

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

const std::vector<std::string>& probed_fields() {
  static const std::vector<std::string> fields = {"core.fma_units",         "caches.l1_bytes",
                                                  "caches.l2_bytes",        "caches.l3_bytes",
                                                  "rates.memory",           "rates.memory_gain_per_doubling",
                                                  "rates.l3_data",          "launch.multiply_adds_per_second",
                                                  "launch.bytes_per_second"};
  return fields;
}

MachineProbe probe_machine(const TargetInfo& target, int threads, const std::function<void(const char*)>& progress) {
  MachineProbe probe{0, std::max(1, threads), target};
  TargetInfo& m = probe.measured;
  progress("clock");
  probe.clock_hz = measure_clock_hz(kSeconds);
  progress("multiply-adds");
  const double operations = 1e9 * measure_fma_gflops(1, target.vector_bytes, kSeconds) / (target.fma ? 2 : 1);
  const auto lanes = static_cast<double>(target.lanes_f32());
  m.fma_units = std::clamp<int64_t>(std::llround(operations / lanes / probe.clock_hz), 1, 16);
  m.launch.multiply_adds_per_second = rounded(operations / lanes);
  progress("L3");
  m.rates.l3_data = rounded(1e9 * measure_read_gb_per_s(1, target.l3_bytes / 2, kSeconds) / probe.clock_hz);
  progress("memory, one core");
  const int64_t outside = std::clamp(4 * target.l3_bytes, kOutside, kMostOutside);
  const double alone = measure_read_gb_per_s(1, outside, kSeconds);
  m.rates.memory = rounded(1e9 * alone / probe.clock_hz);
  m.launch.bytes_per_second = rounded(1e9 * alone);
  if (probe.threads > 1) {
    progress("memory, all cores");
    const double gain = measure_read_gb_per_s(probe.threads, outside, kSeconds) / alone;
    const double doublings = std::log2(static_cast<double>(probe.threads));
    m.rates.memory_gain_per_doubling = rounded(std::clamp(std::pow(gain, 1 / doublings), 1.0, 2.0));
  }
  return probe;
}

std::string toml_of(const MachineProbe& probe, const std::string& extended) {
  std::string text = fmt::format(
      "# Measured by `opfuse targets probe` with {} threads at {:.2f} GHz: {}.\nschema = 1\nextends = \"{}\"\n"
      "about = \"{} with measured numbers\"\n",
      probe.threads, probe.clock_hz / 1e9, processor_name(), extended, extended);
  std::string section;
  for (const TargetField& field : target_fields()) {
    const std::string name = std::string(field.section) + "." + field.key;
    if (std::find(probed_fields().begin(), probed_fields().end(), name) == probed_fields().end()) continue;
    if (field.section != section) text += fmt::format("\n[{}]\n", section = field.section);
    text += fmt::format("{} = {}\n", field.key, text_of(field, probe.measured));
  }
  return text;
}

}  // namespace opfuse
