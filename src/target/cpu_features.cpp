// The CPU features a target may need, and how to find them: what the compiler's run time knows (it also asks whether
// the system keeps the registers), and bits of CPUID's leaf 7 beside the vectors they work on.
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "target/target_file.hpp"

namespace opfuse {
namespace {

struct Leaf7 {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf7 leaf7(unsigned subleaf) {
  Leaf7 r;
  __get_cpuid_count(7, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

bool bit(unsigned word, int at) { return (word >> at & 1U) != 0; }
bool has_avx512() { return __builtin_cpu_supports("avx512f"); }
/// Matrix registers are kept by the system for processes that ask for them; threads that are made later have them too.
bool has_matrices(int in_edx) {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  if (!has_avx512() || !bit(leaf7(0).edx, in_edx)) return false;
  static const bool granted = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return granted;
}
bool has_avx2() { return __builtin_cpu_supports("avx2"); }

}  // namespace

const std::vector<CpuFeature>& cpu_features() {
  static const std::vector<CpuFeature> features = {
      {"avx512f", has_avx512},
      {"avx512vl", [] { return has_avx512() && __builtin_cpu_supports("avx512vl"); }},
      {"avx512bw", [] { return has_avx512() && __builtin_cpu_supports("avx512bw"); }},
      {"avx512dq", [] { return has_avx512() && __builtin_cpu_supports("avx512dq"); }},
      {"avx2", has_avx2},
      {"fma", [] { return static_cast<bool>(__builtin_cpu_supports("fma")); }},
      {"sse2", [] { return static_cast<bool>(__builtin_cpu_supports("sse2")); }},
      {"avx512vnni", [] { return has_avx512() && bit(leaf7(0).ecx, 11); }, "x86-64-v4"},
      {"avx512vbmi", [] { return has_avx512() && bit(leaf7(0).ecx, 1); }, "x86-64-v4"},
      {"avx512bf16", [] { return has_avx512() && bit(leaf7(1).eax, 5); }, "x86-64-v4"},
      {"avx512fp16", [] { return has_avx512() && bit(leaf7(0).edx, 23); }},
      {"amx-tile", [] { return has_matrices(24); }, "x86-64-v4"},
      {"amx-int8", [] { return has_matrices(25); }, "x86-64-v4"},
      {"amx-bf16", [] { return has_matrices(22); }, "x86-64-v4"},
      {"avxvnni", [] { return has_avx2() && bit(leaf7(1).eax, 4); }, "x86-64-v3"},
  };
  return features;
}

int vector_bytes_of(const std::vector<std::string>& features) {
  const auto has = [&](const char* name) {
    return std::find(features.begin(), features.end(), name) != features.end();
  };
  return has("avx512f") ? 64 : has("avx2") ? 32 : 16;
}

std::vector<std::string> host_features() {
  __builtin_cpu_init();
  std::vector<std::string> found;
  for (const CpuFeature& feature : cpu_features())
    if (feature.here()) found.emplace_back(feature.name);
  return found;
}

}  // namespace opfuse
