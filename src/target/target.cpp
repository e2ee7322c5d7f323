// The CPU targets, as a table, and what this machine can run.
#include "target/target.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/fail.hpp"

namespace opfuse {
namespace {

const std::vector<TargetInfo>& table() {
  static const std::vector<TargetInfo> targets = {
      {.name = "cpu:avx512-vnni",
       .vector_bytes = 64,
       .vector_registers = 32,
       .fma = true,
       .llvm_cpu = "x86-64-v4",
       .features = {"avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512vnni", "avx2", "fma"}},
      {.name = "cpu:avx512",
       .vector_bytes = 64,
       .vector_registers = 32,
       .fma = true,
       .llvm_cpu = "x86-64-v4",
       .features = {"avx512f", "avx512vl", "avx512bw", "avx512dq", "avx2", "fma"}},
      {.name = "cpu:avx2",
       .vector_bytes = 32,
       .vector_registers = 16,
       .fma = true,
       .llvm_cpu = "x86-64-v3",
       .features = {"avx2", "fma"}},
      {.name = "cpu:baseline",
       .vector_bytes = 16,
       .vector_registers = 16,
       .fma = false,
       .llvm_cpu = "x86-64",
       .features = {"sse2"}},
  };
  return targets;
}

constexpr const char* kArchitectures[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"};

TargetInfo cuda_target(std::string_view name) {
  TargetInfo target;
  target.name = name;
  target.vector_bytes = 16;
  target.emulated = name == "cuda:emulated";
  target.cuda_arch = target.emulated ? "emulated" : name.substr(5);
  return target;
}

bool has_feature(const std::string& feature) {
  __builtin_cpu_init();
  if (feature == "avx512f") return __builtin_cpu_supports("avx512f");
  if (feature == "avx512vl") return __builtin_cpu_supports("avx512vl");
  if (feature == "avx512bw") return __builtin_cpu_supports("avx512bw");
  if (feature == "avx512dq") return __builtin_cpu_supports("avx512dq");
  if (feature == "avx512vnni") return __builtin_cpu_supports("avx512vnni");
  if (feature == "avx2") return __builtin_cpu_supports("avx2");
  if (feature == "fma") return __builtin_cpu_supports("fma");
  if (feature == "sse2") return __builtin_cpu_supports("sse2");
  return false;
}

/// The third level that one core reaches, 0: not known. The C library adds up those of a socket.
int64_t own_l3_bytes() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");  // "32768K"
  int64_t kib = 0;
  char unit = 0;
  return file >> kib >> unit && unit == 'K' && kib > 0 ? kib << 10 : 0;
}

/// Cache sizes as the C library and, for the third level, the kernel report them; the table's defaults where neither
/// does.
TargetInfo with_caches(TargetInfo target) {
  const auto set = [](int64_t& field, int name) {
    const long bytes = sysconf(name);
    if (bytes > 0) field = bytes;
  };
  set(target.l1_bytes, _SC_LEVEL1_DCACHE_SIZE);
  set(target.l2_bytes, _SC_LEVEL2_CACHE_SIZE);
  set(target.l3_bytes, _SC_LEVEL3_CACHE_SIZE);
  if (const int64_t own = own_l3_bytes()) target.l3_bytes = own;
  return target;
}

}  // namespace

std::vector<std::string> known_targets() {
  std::vector<std::string> names;
  for (const TargetInfo& target : table()) names.push_back(target.name);
  return names;
}

std::vector<std::string> cuda_targets() {
  std::vector<std::string> names;
  for (const char* arch : kArchitectures) names.push_back(std::string("cuda:") + arch);
  names.push_back("cuda:emulated");
  return names;
}

std::vector<std::string> host_features() {
  std::vector<std::string> features;
  for (const TargetInfo& target : table())
    for (const std::string& feature : target.features)
      if (has_feature(feature) && std::find(features.begin(), features.end(), feature) == features.end())
        features.push_back(feature);
  return features;
}

TargetInfo host_target() {
  for (const TargetInfo& target : table())
    if (std::all_of(target.features.begin(), target.features.end(), has_feature)) return with_caches(target);
  throw fail(E::unsupported_cpu, "this machine runs none of the targets {}", fmt::join(known_targets(), ", "));
}

TargetInfo parse_target(std::string_view name) {
  if (name == "cpu" || name == "host" || name.empty()) return host_target();
  for (const TargetInfo& target : table())
    if (target.name == name) return with_caches(target);
  for (const std::string& known : cuda_targets())
    if (known == name) return cuda_target(name);
  throw fail(E::bad_option, "unknown target '{}'", name)
      .hint(fmt::format("known targets: host, {}, {}", fmt::join(known_targets(), ", "),
                        fmt::join(cuda_targets(), ", ")));
}

}  // namespace opfuse
