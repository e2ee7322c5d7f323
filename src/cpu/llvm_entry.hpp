// The one C symbol of libopfuse_llvm.so. Both sides are built from the same sources with the same
// compiler; `size` and `version` refuse a library of another build. Errors cross as data.
#pragma once

#include "kernel/spec.hpp"
#include "opfuse/error.hpp"

namespace opfuse {

inline constexpr int kLlvmEntryVersion = 3;
inline constexpr const char* kLlvmEntryName = "opfuse_llvm_generate";
inline constexpr const char* kLlvmLibraryName = "libopfuse_llvm.so";

struct LlvmRequest {
  size_t size = sizeof(LlvmRequest);
  int version = kLlvmEntryVersion;
  const std::vector<KernelSpec>* kernels = nullptr;
  const TargetInfo* target = nullptr;
  const CodegenOptions* options = nullptr;
  LinkedCode result;
  std::vector<std::string> emitters;  ///< names of all that the library has
  std::optional<Diagnostic> error;
};

/// 0: done (result or error is set); 1: the library is of another build.
using LlvmEntry = int (*)(LlvmRequest*);

}  // namespace opfuse
