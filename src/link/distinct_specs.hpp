// Which kernels programs need, each once.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/spec.hpp"

namespace opfuse {

inline constexpr size_t kNoKernel = static_cast<size_t>(-1);  ///< of a reference launch

struct DistinctSpecs {
  std::vector<KernelSpec> specs;
  std::vector<std::vector<size_t>> of_launch;  ///< by program: launch -> spec
  std::vector<std::vector<int64_t>> size_of;   ///< by program: launch -> the size its kernel reads; 0: none
};

DistinctSpecs distinct_specs(const std::vector<const Program*>& programs, const TargetInfo& target);

}  // namespace opfuse
