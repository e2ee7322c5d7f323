// Regions -> machine code of CPUs. generate() is the only door to LLVM: the emitters live in a library of their own
// (libopfuse_llvm.so) that is opened on first use, so running an artifact never loads LLVM.
#pragma once

#include "kernel/spec.hpp"

namespace opfuse {

LayoutWish wish_layouts(const Region& region, const TargetInfo& target);

/// Chooses tile sizes from extents, layouts and the target: the analytic schedule model.
Schedule choose_schedule(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target);

/// A reason why a region cannot be generated as it stands (stage sequence, dynamic dimension ...), or
/// nullopt. "A group is legal exactly when lowering it succeeds": planner and cost model call this.
std::optional<std::string> cannot_generate(const Region& region, const TargetInfo& target);

/// Why a region that was joined of several, and can be generated, would be slower than these apart, as a sentence;
/// nullopt where it pays.
std::optional<std::string> joining_loses(const Region& region, const TargetInfo& target);

/// Identifies the code generator's library by its bytes (empty when there is none), without opening it: kernels of
/// another build are never taken from a cache.
std::string generator_fingerprint();

/// Skeletons that the library emits: those of the table (cpu/skeletons.hpp).
std::vector<std::string> emitter_names();

/// Compiles kernels in parallel. Throws E::codegen_failed with the kernel's name.
LinkedCode generate(const std::vector<KernelSpec>& kernels, const TargetInfo& target, const CodegenOptions& options);

}  // namespace opfuse
