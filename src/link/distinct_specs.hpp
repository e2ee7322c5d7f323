// Which kernels programs need, each once.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/spec.hpp"

namespace opfuse {

inline constexpr size_t kNoKernel = static_cast<size_t>(-1);  ///< of a reference launch

/// What a launch gives its kernel behind its operands.
struct LaunchConstant {
  std::vector<uint8_t> bytes;  ///< empty: nothing
  int64_t size = 0;            ///< of the launch, where that is what the kernel reads
};

struct DistinctSpecs {
  std::vector<KernelSpec> specs;
  std::vector<std::vector<size_t>> of_launch;            ///< by program: launch -> spec
  std::vector<std::vector<LaunchConstant>> constant_of;  ///< by program, of launches
};

DistinctSpecs distinct_specs(const std::vector<const Program*>& programs, const TargetInfo& target);

}  // namespace opfuse
