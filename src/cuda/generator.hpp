// Regions -> CUDA C++ -> device code: the second generator. It answers the same questions as the CPU's
// (kernel/spec.hpp) about the same regions.
#pragma once

#include "kernel/spec.hpp"

namespace opfuse::cuda {

/// Why a region cannot be generated as it stands, or nullopt.
std::optional<std::string> cannot_generate(const Region& region, const TargetInfo& target);
LayoutWish wish_layouts(const Region& region, const TargetInfo& target);
Schedule choose_schedule(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target);

/// What a schedule could not avoid, for reports: rows that are read more than once, and why. Empty: nothing.
std::string limit_of(const KernelSpec& kernel, const TargetInfo& target);

/// Writes and compiles kernels. Throws E::codegen_failed with the kernel's name, E::missing_compiler.
LinkedCode generate(const std::vector<KernelSpec>& kernels, const TargetInfo& target, const CodegenOptions& options);

/// Of the texts this library writes; part of the names of cached kernels.
std::string generator_version();

/// One kernel as text.
struct KernelText {
  std::string symbol;
  std::string constants;             ///< "constexpr int kBlock = 256;" ...
  std::vector<std::string> helpers;  ///< device functions it calls, in file order
  std::string function;
  std::vector<std::pair<std::string, std::string>> arguments;  ///< type and name
  Dim grid = 1;
  int block = 256;
  Dim launch_shared = 0;           ///< bytes of shared memory that the launch gives
  int64_t launch_shared_most = 0;  ///< the most it may be
  std::vector<TensorMap> maps;     ///< arguments behind the symbols
  std::string reading;             ///< how often rows are read; empty where there are none
};
KernelText write_kernel(const KernelSpec& spec, const TargetInfo& target);

/// A file that nvcc -c and NVRTC compile by themselves. `comment`: lines for the head.
std::string file_text(const KernelText& kernel, const KernelSpec& spec, const std::string& comment);
/// The head's lines: shapes, bytes, schedule and launch of a kernel; the region itself.
std::string describe(const KernelSpec& spec, const KernelText& kernel);

}  // namespace opfuse::cuda
