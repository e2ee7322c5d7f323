// The functions that a target's file brings along, compiled as far as a code generator takes them.
#pragma once

#include <map>
#include <vector>

#include "kernel/spec.hpp"

namespace opfuse {

/// Those that the kernels call, by composite of the target's file. C is compiled by $CC, else cc, gcc or clang.
/// E::missing_compiler, E::codegen_failed with the compiler's words.
std::map<int64_t, IntrinsicCode> intrinsics_of(const std::vector<KernelSpec>& kernels, const TargetInfo& target);

}  // namespace opfuse
