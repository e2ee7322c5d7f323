// What a device can run and fuse, as data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opfuse {

/// A code generation target. CPUs: `cpu:baseline` (SSE2), `cpu:avx2` (AVX2+FMA), `cpu:avx512` (AVX-512 F/VL/BW/DQ),
/// `cpu` or `host`: the best this machine runs. NVIDIA GPUs: `cuda:sm_90` and the like; `cuda:emulated` runs the same
/// kernels on the host, for tests.
struct TargetInfo {
  std::string name;           ///< "cpu:avx512"
  int vector_bytes = 64;      ///< 64, 32, 16
  int vector_registers = 32;  ///< 32 or 16
  bool fma = true;
  std::string llvm_cpu;               ///< e.g. "x86-64-v4"
  std::vector<std::string> features;  ///< CPU features the code needs: "avx512f", "fma", ...
  std::string cuda_arch;              ///< "sm_90"; empty for CPUs
  bool emulated = false;              ///< the GPU that the host plays: kernels run as fibers
  bool is_cuda() const { return !cuda_arch.empty(); }
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 32 << 20;
  int64_t lanes_f32() const { return vector_bytes / 4; }
};

/// Throws E::bad_option with the list of known targets.
TargetInfo parse_target(std::string_view name);
TargetInfo host_target();
std::vector<std::string> known_targets();  ///< the CPU's
std::vector<std::string> cuda_targets();
/// Names of CPU features of this machine, as TargetInfo::features spells them.
std::vector<std::string> host_features();

}  // namespace opfuse
