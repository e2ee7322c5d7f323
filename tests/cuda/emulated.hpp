// Runs regions as emulated CUDA kernels between sentinels and compares with the region interpreter.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "cuda/compilers.hpp"
#include "cuda/generator.hpp"
#include "device/emulation.hpp"

namespace opfuse::test {

struct CudaCase {
  std::string name;
  std::string region;  ///< text
  std::vector<SymbolValues> bindings = {{}};
  Schedule schedule = {};  ///< empty: chosen
  double tolerance = 2e-5;
  double low = -1, high = 1;
  std::map<int, Tensor> given = {};  ///< operands that are not drawn, by parameter
};

/// The region's text with every tensor and value of f32 of `dtype` instead.
std::string retyped(const std::string& text, const std::string& dtype);

KernelSpec spec_of(const CudaCase& c, const TargetInfo& target);
std::vector<KernelSpec> specs_of(const std::vector<CudaCase>& cases, const TargetInfo& target);
/// What is wrong with a kernel's results under every binding; empty: nothing.
std::string run_case(const CudaCase& c, const KernelSpec& spec, const cuda::KernelText& kernel,
                     const cuda::EmulatedModule& module, int orders = 2);
/// Compiles all cases in one image and checks each.
void check_cases(const std::vector<CudaCase>& cases);
TargetInfo emulated_target();

/// Every skeleton at odd, prime and tiny shapes: what the tests of results, of registers and of mutations run over.
const std::vector<CudaCase>& map_cases();
const std::vector<CudaCase>& row_cases();
const std::vector<CudaCase>& window_cases();
const std::vector<CudaCase>& contraction_cases();
const std::vector<CudaCase>& tensor_core_cases();
const std::vector<CudaCase>& attention_cases();
/// Of sm_90a alone, and of the emulated device where a schedule asks for them.
const std::vector<CudaCase>& hopper_cases();
const std::vector<CudaCase>& window_rows_cases();
std::vector<const std::vector<CudaCase>*> case_groups();  ///< all but Hopper's
std::vector<CudaCase> all_cases();

}  // namespace opfuse::test
