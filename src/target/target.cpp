// Targets by name: those that are compiled in, read once, and those of files. Cache sizes are the machine's where it
// says them, so that the same name fits any machine; what a file states counts instead.
#include "target/target.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <map>
#include <mutex>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/hash.hpp"
#include "target/fields.hpp"
#include "target/kinds.hpp"
#include "target/target_file.hpp"

namespace opfuse {
namespace {

struct Shipped {
  TargetInfo target;
  Capabilities said;
  bool own_instructions = false;  ///< f32 kernels differ from those of what it extends
};

/// "sm_90a" -> 90
int number_in(const std::string& text) {
  const size_t digit = text.find_first_of("0123456789");
  return digit == std::string::npos ? 1 << 20 : std::atoi(text.c_str() + digit);
}

/// CPUs first, wider vectors and more features first; GPUs by architecture, the emulated one last.
bool listed_before(const Shipped& a, const Shipped& b) {
  const auto order = [](const TargetInfo& t) {
    return std::make_tuple(!t.traits.on_host, -t.vector_bytes, -static_cast<int>(t.features.size()),
                           number_in(t.cuda_arch), t.name);
  };
  return order(a.target) < order(b.target);
}

const std::vector<Shipped>& table() {
  static const std::vector<Shipped> targets = [] {
    std::vector<Shipped> list;
    for (const ShippedTarget& shipped : shipped_targets()) {
      TargetFile file = read_shipped(shipped);
      for (const TargetMistake& m : file.mistakes)
        OPFUSE_CHECK(false, "targets/{}:{}:{}: {}", m.file, m.line, m.column, m.message);
      const bool own = shipped.text.find("\nllvm_cpu = ") != std::string_view::npos;
      if (file.is_target()) list.push_back({std::move(file.target), std::move(file.capabilities), own});
    }
    std::sort(list.begin(), list.end(), listed_before);
    return list;
  }();
  return targets;
}

/// Targets of files that this process has read, by name: plans keep names.
std::mutex loaded_mutex;
struct Loaded {
  TargetInfo target;
  Capabilities said;
};
std::map<std::string, Loaded>& loaded() {
  static std::map<std::string, Loaded> targets;
  return targets;
}

/// The third level that one core reaches, 0: not known. The C library adds up those of a socket.
int64_t own_l3_bytes() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");  // "32768K"
  int64_t kib = 0;
  char unit = 0;
  return file >> kib >> unit && unit == 'K' && kib > 0 ? kib << 10 : 0;
}

int64_t system_bytes(int name) { return std::max<int64_t>(sysconf(name), 0); }

/// Cache sizes as the C library and, for the third level, the kernel report them, where `stated` has no others.
TargetInfo with_caches(TargetInfo target, const std::map<std::string, bool>& stated = {}) {
  if (!target.traits.on_host) return target;
  const auto set = [&](int64_t& field, const char* key, int64_t bytes) {
    const auto at = stated.find(key);
    if (bytes > 0 && !(at != stated.end() && at->second)) field = bytes;
  };
  set(target.l1_bytes, "caches.l1_bytes", system_bytes(_SC_LEVEL1_DCACHE_SIZE));
  set(target.l2_bytes, "caches.l2_bytes", system_bytes(_SC_LEVEL2_CACHE_SIZE));
  const int64_t own = own_l3_bytes();
  set(target.l3_bytes, "caches.l3_bytes", own > 0 ? own : system_bytes(_SC_LEVEL3_CACHE_SIZE));
  return target;
}

TargetInfo target_of_file(const std::string& path) {
  const TargetFile file = read_target_file(path);
  if (!file.mistakes.empty()) {
    const TargetMistake& m = file.mistakes.front();
    const size_t more = file.mistakes.size() - 1;
    throw fail(E::bad_file, "{}:{}:{}: {}", m.file, m.line, m.column, m.message)
        .hint(more == 0 ? m.hint : fmt::format("{} more: `opfuse targets check {}` lists them", more, path));
  }
  TargetInfo target = with_caches(file.target, file.stated);
  target.fingerprint = hash_text(toml_of(target) + intrinsics_text(file.capabilities)).hex();
  const std::lock_guard lock(loaded_mutex);
  return (loaded()[target.name] = {target, file.capabilities}).target;
}

std::vector<std::string> names_of(bool (*wanted)(const Shipped&)) {
  std::vector<std::string> names;
  for (const Shipped& shipped : table())
    if (wanted(shipped)) names.push_back(shipped.target.name);
  return names;
}

}  // namespace

bool TargetInfo::has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

int64_t TargetInfo::multiply_adds_in_flight() const {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(fma_units * fma_latency)));
}

std::vector<std::string> known_targets() {
  return names_of([](const Shipped& s) { return s.own_instructions; });
}
std::vector<std::string> cuda_targets() {
  return names_of([](const Shipped& s) { return s.target.kind == "cuda"; });
}
std::vector<std::string> listed_targets() {
  return names_of([](const Shipped&) { return true; });
}

static TargetInfo with_features_besides(TargetInfo target, const std::vector<std::string>& here) {
  for (const CpuFeature& feature : cpu_features()) {
    if (!feature.joins || target.llvm_cpu != feature.joins || target.has(feature.name)) continue;
    if (std::find(here.begin(), here.end(), feature.name) == here.end()) continue;
    target.beside.emplace_back(feature.name);
    target.features.emplace_back(feature.name);
    target.fingerprint += std::string("+") + feature.name;
  }
  return target;
}

TargetInfo host_target() {
  const std::vector<std::string> here = host_features();
  for (const Shipped& shipped : table())
    if (shipped.own_instructions &&
        std::all_of(shipped.target.features.begin(), shipped.target.features.end(),
                    [&](const std::string& f) { return std::find(here.begin(), here.end(), f) != here.end(); }))
      return with_features_besides(with_caches(shipped.target), here);
  throw fail(E::unsupported_cpu, "this machine runs none of the targets {}", fmt::join(known_targets(), ", "));
}

TargetInfo parse_target(std::string_view name) {
  if (name.find(',') != std::string_view::npos)
    throw fail(E::bad_option, "'{}' names several targets, and one is wanted here", name)
        .hint("opfuse run, compare, explain, fuse and compile take devices in front of a cpu target");
  if (name == "cpu" || name == "host" || name == "cpu:host" || name.empty()) return host_target();
  if (name.ends_with(".toml") || name.find('/') != std::string_view::npos) return target_of_file(std::string(name));
  for (const Shipped& shipped : table())
    if (shipped.target.name == name) return with_caches(shipped.target);
  {
    const std::lock_guard lock(loaded_mutex);
    if (const auto at = loaded().find(std::string(name)); at != loaded().end()) return at->second.target;
  }
  const std::string near = did_you_mean(name, listed_targets());
  throw fail(E::bad_option, "unknown target '{}'", name)
      .hint(fmt::format("{}known targets: host, {}, or a file such as mine.toml", near.empty() ? "" : near + " ",
                        fmt::join(listed_targets(), ", ")));
}

const Capabilities& capabilities_of(const TargetInfo& target) {
  static const Capabilities kNothing;
  for (const Shipped& shipped : table())
    if (shipped.target.name == target.name) return shipped.said;
  const std::lock_guard lock(loaded_mutex);
  const auto at = loaded().find(target.name);
  return at == loaded().end() ? kNothing : at->second.said;  // nodes of a map stay where they are
}

bool has_generator(const TargetInfo& target) {
  const DeviceKind* const kind = find_kind(target.kind);
  return !kind || kind->generated;
}

}  // namespace opfuse
