// Attributes of launches on the fake driver: a programmatic launch begins before the one in front of it has ended, a
// cluster divides the grid.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

#include "cuda/emulated.hpp"
#include "device/driver.hpp"
#include "runtime/device_handles.hpp"

namespace opfuse::test {
namespace {

const cuda::Driver& d = cuda::fake_driver();
constexpr int kBlocks = 3, kThreads = 64, kSize = kBlocks * kThreads;
constexpr size_t kBytes = kSize * sizeof(float);

cuda::KernelText text_of(const std::string& name, const std::string& body) {
  cuda::KernelText text;
  text.symbol = name;
  text.function = fmt::format(
      "extern \"C\" __global__ void {}(const float* x, float* y) {{\n  __shared__ __align__(16) float tile[64];\n"
      "  const int t = (int)threadIdx.x, i = (int)blockIdx.x * 64 + t;\n  {}\n}}\n",
      name, body);
  text.arguments = {{"const float*", "x"}, {"float*", "y"}};
  return text;
}

/// y = 2 x, then a kernel of each kind that reads that y.
class Attributes : public testing::Test {
 protected:
  static const std::vector<uint8_t>& image() {
    static const std::vector<uint8_t> made = cuda::compile_for_emulation(
        {text_of("twice", "tile[t] = 2 * x[i]; __syncthreads(); y[i] = tile[t];"),
         text_of("waits", "tile[t] = (float)t; __syncthreads(); wait_for_earlier_kernels(); y[i] = x[i] + tile[t];"),
         text_of("reads_early", "const float v = x[i]; wait_for_earlier_kernels(); y[i] = v + (float)t;"),
         text_of("never_waits", "y[i] = x[i] + (float)t;")});
    return made;
  }
  Attributes() : context_(d, 0), here_(context_), module_(d), stream_(d) {
    d.check(d.cuModuleLoadData(module_.slot(), image().data()), "module");
    d.check(d.cuStreamCreate(stream_.slot(), 1), "stream");
    for (auto& m : memory_) m = DeviceMemory(d, kBytes);
  }
  ~Attributes() override {
    for (auto& m : memory_) m = DeviceMemory();
    module_.reset();
    stream_.reset();
  }

  cuda::CuResult launch(const char* name, size_t from, size_t to, std::vector<cuda::CuLaunchAttribute> attributes) {
    cuda::CuFunction function = nullptr;
    d.check(d.cuModuleGetFunction(&function, module_.get(), name), "function");
    cuda::CuLaunch shape{.grid = {kBlocks, 1, 1}, .block = {kThreads, 1, 1}, .stream = stream_.get()};
    shape.attributes = attributes.data();
    shape.attribute_count = static_cast<unsigned>(attributes.size());
    cuda::CuPointer x = memory_[from].address(), y = memory_[to].address();
    void* arguments[] = {&x, &y};
    return d.cuLaunchKernelEx(&shape, function, arguments, nullptr);
  }
  static cuda::CuLaunchAttribute programmatic() {
    cuda::CuLaunchAttribute a;
    a.id = cuda::kProgrammaticAttribute;
    a.value.programmatic = 1;
    return a;
  }
  static cuda::CuLaunchAttribute cluster(unsigned blocks) {
    cuda::CuLaunchAttribute a;
    a.id = cuda::kClusterAttribute;
    a.value.cluster[0] = blocks, a.value.cluster[1] = a.value.cluster[2] = 1;
    return a;
  }

  /// How many of two runs are right: one overlaps the launches, the other does not.
  int right_of_two(const char* second) {
    std::array<float, kSize> x, y;
    int right = 0;
    for (int run = 0; run < 2; ++run) {
      for (int i = 0; i < kSize; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i + 1000 * run);
      d.check(d.cuMemcpyHtoDAsync_v2(memory_[0].address(), x.data(), kBytes, stream_.get()), "copy");
      d.check(launch("twice", 0, 1, {}), "first");
      d.check(launch(second, 1, 2, {programmatic()}), "second");
      d.check(d.cuMemcpyDtoHAsync_v2(y.data(), memory_[2].address(), kBytes, stream_.get()), "copy");
      d.check(d.cuStreamSynchronize(stream_.get()), "run");
      bool all = true;
      for (int i = 0; i < kSize; ++i)
        all = all && y[static_cast<size_t>(i)] == 2 * x[static_cast<size_t>(i)] + static_cast<float>(i % kThreads);
      right += all;
    }
    return right;
  }

  DeviceContext context_;
  InContext here_;
  DeviceModule module_;
  DeviceStream stream_;
  DeviceMemory memory_[3];
};

TEST_F(Attributes, a_programmatic_launch_begins_before_the_one_in_front_of_it_has_ended) {
  EXPECT_EQ(right_of_two("waits"), 2);
  EXPECT_EQ(right_of_two("reads_early"), 1) << "stale values where the launches overlap";
  EXPECT_EQ(right_of_two("never_waits"), 1);
}

TEST_F(Attributes, a_cluster_divides_the_grid) {
  EXPECT_EQ(launch("twice", 0, 1, {cluster(3)}), 0);
  EXPECT_NE(launch("twice", 0, 1, {cluster(2)}), 0) << "three blocks are no clusters of two";
  EXPECT_NE(launch("twice", 0, 1, {cluster(16)}), 0) << "more than any device takes without asking";
  cuda::CuLaunchAttribute unknown;
  unknown.id = 99;
  EXPECT_NE(launch("twice", 0, 1, {unknown}), 0);
  d.check(d.cuStreamSynchronize(stream_.get()), "run");
}

}  // namespace
}  // namespace opfuse::test
