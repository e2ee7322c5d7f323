// The two compilers of kernel text: NVRTC for devices, the host's C++ compiler for the emulated device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/generator.hpp"

namespace opfuse::cuda {

struct CompiledKernel {
  std::vector<uint8_t> image;  ///< cubin, or a shared object of the host
  int registers = 0;
  int64_t shared_bytes = 0, spill_bytes = 0;
};

/// Straight to a cubin. Needs neither a GPU nor a driver. E::missing_compiler, E::codegen_failed.
CompiledKernel compile_for_device(const std::string& text, const std::string& name, const std::string& arch);
/// Where NVRTC was found, or an error's text with the places searched.
std::string nvrtc_state();
bool have_nvrtc();

/// Many kernels in one image for the emulated device. E::missing_compiler without a C++ compiler.
std::vector<uint8_t> compile_for_emulation(const std::vector<KernelText>& kernels);
/// The translation unit of that image.
std::string emulation_source(const std::vector<KernelText>& kernels);

}  // namespace opfuse::cuda
