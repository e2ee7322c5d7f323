// Kernels as NVRTC sees them: everything compiles for real architectures and no register is spilled.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "cuda/emulated.hpp"
#include "opfuse/error.hpp"

namespace opfuse::test {
namespace {

void expect_no_spills(const std::vector<CudaCase>& cases, const TargetInfo& target) {
  const std::vector<KernelSpec> specs = specs_of(cases, target);
  const LinkedCode code = cuda::generate(specs, target, {});
  ASSERT_EQ(code.kernels.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(code.kernels[i].device.spill_bytes, 0) << cases[i].name << " " << specs[i].schedule.text();
    EXPECT_GT(code.kernels[i].device.registers, 0) << cases[i].name;
    EXPECT_LE(code.kernels[i].device.shared_bytes, 48 << 10) << cases[i].name;
    EXPECT_GT(code.kernels[i].size, 0u) << cases[i].name;
  }
}

std::string text_of(const CudaCase& c, const TargetInfo& target) {
  const cuda::KernelText text = cuda::write_kernel(spec_of(c, target), target);
  return text.constants + text.function;
}

std::string types_of(const KernelSpec& spec) {
  std::string types;
  for (const Param& p : spec.region.params) types += fmt::format(" {}", name_of(p.type.dtype));
  return types;
}

/// One of each schedule and types: other shapes change bounds and addresses.
std::vector<CudaCase> cases_of_each_schedule(const TargetInfo& target) {
  std::vector<CudaCase> chosen;
  std::set<std::string> seen;
  for (const CudaCase& c : all_cases()) {
    const KernelSpec spec = spec_of(c, target);
    if (seen.insert(spec.schedule.text() + types_of(spec)).second) chosen.push_back(c);
  }
  return chosen;
}

/// Those that are `second`'s alone or have another text there than for `first`, one of each schedule and types; of the
/// others one of each skeleton and types.
std::vector<CudaCase> cases_of_second(const TargetInfo& first, const TargetInfo& second) {
  std::vector<CudaCase> chosen = hopper_cases();
  std::set<std::string> seen;
  for (const CudaCase& c : cases_of_each_schedule(second)) {
    const KernelSpec spec = spec_of(c, second);
    if (seen.insert(spec.schedule.skeleton + types_of(spec)).second || text_of(c, first) != text_of(c, second))
      chosen.push_back(c);
  }
  return chosen;
}

TEST(Nvrtc, compiles_every_skeleton_for_sm_80_without_spills) {
  if (!cuda::have_nvrtc()) GTEST_SKIP() << cuda::nvrtc_state();
  const TargetInfo ampere = parse_target("cuda:sm_80");
  const std::vector<CudaCase> cases = cases_of_each_schedule(ampere);
  EXPECT_GE(cases.size(), 100u);
  expect_no_spills(cases, ampere);
}

TEST(Nvrtc, compiles_what_is_sm_90as_own_without_spills) {
  if (!cuda::have_nvrtc()) GTEST_SKIP() << cuda::nvrtc_state();
  const TargetInfo hopper = parse_target("cuda:sm_90a");
  const std::vector<CudaCase> cases = cases_of_second(parse_target("cuda:sm_80"), hopper);
  EXPECT_GE(cases.size(), hopper_cases().size() + 20);
  expect_no_spills(cases, hopper);
}

/// Every case: `./dev test --long --only nvrtc`.
TEST(EachNvrtc, compiles_every_case_without_spills) {
  if (!cuda::have_nvrtc()) GTEST_SKIP() << cuda::nvrtc_state();
  std::vector<CudaCase> cases = all_cases();
  expect_no_spills(cases, parse_target("cuda:sm_80"));
  cases.insert(cases.end(), hopper_cases().begin(), hopper_cases().end());
  expect_no_spills(cases, parse_target("cuda:sm_90a"));
}

TEST(NvrtcLoader, names_the_places_it_searched) {
  const std::string state = cuda::nvrtc_state();
  if (cuda::have_nvrtc())
    EXPECT_THAT(state, testing::HasSubstr("version"));
  else
    EXPECT_THAT(state, testing::HasSubstr("/usr/local/cuda/lib64/libnvrtc.so.13"));
}

TEST(NvrtcLoader, a_refused_kernel_is_an_error_with_the_compilers_words) {
  if (!cuda::have_nvrtc()) GTEST_SKIP() << cuda::nvrtc_state();
  try {
    cuda::compile_for_device("__global__ void f() { undeclared(); }", "broken_kernel", "sm_90");
    FAIL() << "compiled";
  } catch (const Error& e) {
    EXPECT_THAT(std::string(e.what()),
                testing::AllOf(testing::HasSubstr("broken_kernel"), testing::HasSubstr("undeclared")));
  }
}

TEST(NvrtcLoader, a_kernels_file_builds_alone_with_nvcc_and_without_a_warning) {
  if (std::system("nvcc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no nvcc on the PATH";
  const TargetInfo target = parse_target("cuda:sm_90");
  const std::set<std::string> wanted = {"add_relu",        "softmax_long",   "softmax_open",  "masked_short_four",
                                        "layer_norm_four", "depthwise",      "max_pool_half", "gemm_odd",
                                        "conv_odd",        "conv_half_deep", "gemm_bfloat"};
  size_t built = 0;
  for (const CudaCase& c : all_cases()) {
    if (!wanted.count(c.name)) continue;
    const KernelSpec spec = spec_of(c, target);
    const cuda::KernelText kernel = cuda::write_kernel(spec, target);
    const std::string text = cuda::file_text(kernel, spec, "");
    EXPECT_THAT(text,
                testing::AllOf(testing::HasSubstr("// schedule  " + spec.schedule.text()),
                               testing::HasSubstr("// kernel    " + kernel.symbol), testing::HasSubstr("stage ")));
    const std::string path = testing::TempDir() + "/" + kernel.symbol;
    std::ofstream(path + ".cu") << text;
    const std::string command = "nvcc -arch=sm_90 -Werror all-warnings -c " + path + ".cu -o " + path + ".o";
    EXPECT_EQ(std::system(command.c_str()), 0) << c.name << "\n" << text;
    std::filesystem::remove(path + ".cu");
    std::filesystem::remove(path + ".o");
    ++built;
  }
  EXPECT_EQ(built, wanted.size());
}

}  // namespace
}  // namespace opfuse::test
