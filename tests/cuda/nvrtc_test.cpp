// Kernels as NVRTC sees them: everything compiles for real architectures and no register is spilled.
#include "cuda/emulated.hpp"
#include "opfuse/error.hpp"

namespace opfuse::test {
namespace {

class Nvrtc : public testing::TestWithParam<const char*> {};

TEST_P(Nvrtc, compiles_every_skeleton_without_spills) {
  if (!cuda::have_nvrtc()) GTEST_SKIP() << cuda::nvrtc_state();
  const TargetInfo target = parse_target(GetParam());
  const std::vector<CudaCase> cases = all_cases();
  const std::vector<KernelSpec> specs = specs_of(cases, target);
  CodegenOptions options;
  const LinkedCode code = cuda::generate(specs, target, options);
  ASSERT_EQ(code.kernels.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(code.kernels[i].device.spill_bytes, 0) << cases[i].name << " " << specs[i].schedule.text();
    EXPECT_GT(code.kernels[i].device.registers, 0) << cases[i].name;
    EXPECT_LE(code.kernels[i].device.shared_bytes, 48 << 10) << cases[i].name;
    EXPECT_GT(code.kernels[i].size, 0u) << cases[i].name;
  }
}
INSTANTIATE_TEST_SUITE_P(Architectures, Nvrtc, testing::Values("cuda:sm_80", "cuda:sm_90a"),
                         [](const auto& info) { return std::string(info.param).substr(5); });

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

}  // namespace
}  // namespace opfuse::test
