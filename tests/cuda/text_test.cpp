// What is written, and what is said where it cannot be.
#include "base/fail.hpp"
#include "codegen/regions.hpp"
#include "cuda/emulated.hpp"

namespace opfuse::test {
namespace {

/// $CXX while it lives.
class HostCompiler {
 public:
  explicit HostCompiler(const char* name) {
    if (const char* named = std::getenv("CXX")) kept_ = named;
    setenv("CXX", name, 1);
  }
  ~HostCompiler() { kept_ ? setenv("CXX", kept_->c_str(), 1) : unsetenv("CXX"); }

 private:
  std::optional<std::string> kept_;
};

/// Clang calls other hooks than GCC where it copies structs.
TEST(KernelText, is_compiled_by_either_compiler) {
  for (const char* name : {"g++", "clang++-19"}) {
    if (std::system(fmt::format("{} --version >/dev/null 2>&1", name).c_str()) != 0) continue;
    const HostCompiler chosen(name);
    for (const CudaCase& c : {map_cases().at(0), tensor_core_cases().at(0), attention_cases().at(0)}) {
      const cuda::KernelText kernel = cuda::write_kernel(spec_of(c, emulated_target()), emulated_target());
      const cuda::EmulatedModule module(cuda::compile_for_emulation({kernel}));
      EXPECT_NO_THROW(module.find(kernel.symbol)) << name;
    }
  }
}

TEST(KernelText, names_the_kernel_that_cannot_be_written_or_compiled) {
  KernelSpec spec = spec_of(row_cases().at(0), emulated_target());
  const cuda::KernelText kernel = cuda::write_kernel(spec, emulated_target());
  const HostCompiler chosen("false");
  try {
    cuda::compile_for_emulation({kernel});
    ADD_FAILURE() << "compiled by 'false'";
  } catch (const Error& e) {
    EXPECT_THAT(e.diagnostic().message, testing::HasSubstr("compiler false"));
    EXPECT_THAT(e.diagnostic().message, testing::HasSubstr(kernel.symbol));
  }
  spec.schedule.set("team", 48);
  try {
    cuda::generate({spec}, emulated_target(), {});
    ADD_FAILURE() << "a team of 48";
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().during, "generate " + kernel_symbol(spec));
  }
}

TEST(KernelText, integers_wrap_in_reductions_as_in_maps) {
  const auto sum =
      std::find_if(row_cases().begin(), row_cases().end(), [](const CudaCase& c) { return c.name == "sum_integers"; });
  ASSERT_NE(sum, row_cases().end());
  EXPECT_THAT(cuda::write_kernel(spec_of(*sum, emulated_target()), emulated_target()).function,
              testing::HasSubstr("s0 = (int)((unsigned int)s0 + (unsigned int)"));
}

/// 6 million results of 2304 terms: neither they nor the operands need more than 32 bits, their product would.
TEST(KernelText, indices_have_64_bits_only_where_they_count_so_far) {
  const auto text = [](const Conv& v) {
    CudaCase c;
    c.name = "conv";
    c.region = conv_region(v);
    return cuda::write_kernel(spec_of(c, emulated_target()), emulated_target()).function;
  };
  EXPECT_THAT(text({.n = "8", .c = 256, .h = 56, .w = 56, .o = 256}), testing::Not(testing::HasSubstr("long long")));
  EXPECT_THAT(text({.n = "1024", .c = 64, .h = 256, .w = 256, .o = 64}), testing::HasSubstr("long long"));
  EXPECT_THAT(text({.n = "n", .c = 64, .h = 56, .w = 56, .o = 64}), testing::HasSubstr("long long"));
}

}  // namespace
}  // namespace opfuse::test
