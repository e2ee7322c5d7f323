// What a device can run and fuse, as data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opfuse {

/// A CPU code generation target. `cpu:baseline` (SSE2), `cpu:avx2` (AVX2+FMA), `cpu:avx512`
/// (AVX-512 F/VL/BW/DQ), `cpu` or `host`: the best this machine runs.
struct TargetInfo {
  std::string name;           ///< "cpu:avx512"
  int vector_bytes = 64;      ///< 64, 32, 16
  int vector_registers = 32;  ///< 32 or 16
  bool fma = true;
  std::string llvm_cpu;               ///< e.g. "x86-64-v4"
  std::vector<std::string> features;  ///< CPU features the code needs: "avx512f", "fma", ...
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 32 << 20;
  int64_t lanes_f32() const { return vector_bytes / 4; }
};

/// Throws E::bad_option with the list of known targets.
TargetInfo parse_target(std::string_view name);
TargetInfo host_target();
std::vector<std::string> known_targets();
/// Names of CPU features of this machine, as TargetInfo::features spells them.
std::vector<std::string> host_features();

}  // namespace opfuse
