// One kernel -> machine code: own LLVM context and module, a short pass pipeline, an ELF object, linked flat.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/spec.hpp"

namespace opfuse::cpu {

/// Machine code and read-only data of one kernel, free of relocations.
struct FlatCode {
  std::vector<uint8_t> bytes;
  size_t entry = 0;  ///< offset of the kernel
  size_t size = 0;   ///< of the kernel's own instructions
};

/// What kernels call where the target's file computes their inner tile.
inline constexpr const char* kIntrinsicSymbol = "opfuse_intrinsic";

/// Lays an ELF object's sections out one after another and resolves every relocation; an undefined
/// symbol is E::codegen_failed naming it. With an intrinsic: its object, or what of its archive is needed, behind the
/// kernel's own; calls of kIntrinsicSymbol go to its symbol.
FlatCode link_object(const std::vector<char>& object, const std::string& symbol,
                     const IntrinsicCode* intrinsic = nullptr);

/// A compiled kernel: `code` holds parts, scratch and the texts asked for; its offset counts from bytes.
struct CompiledKernel {
  KernelCode code;
  FlatCode flat;
};
CompiledKernel compile_kernel(const KernelSpec& spec, const TargetInfo& target, const CodegenOptions& options);

LinkedCode generate_kernels(const std::vector<KernelSpec>& kernels, const TargetInfo& target,
                            const CodegenOptions& options);

}  // namespace opfuse::cpu
