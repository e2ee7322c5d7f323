// Every skeleton and primitive through the driver's functions: on the fake driver in ordinary tests, on a GPU with
// OPFUSE_GPU_TARGET=cuda:sm_90a (bench/gpu.py does that). mma, ldmatrix, cp.async, and on sm_90a wgmma, tensor maps and
// their swizzle are golden tests of the emulation's reading of them.
#include "runtime/device.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

#include "cuda/emulated.hpp"
#include "device/tensor_maps.hpp"

namespace opfuse::test {
namespace {

std::string device_target() {
  const char* named = std::getenv("OPFUSE_GPU_TARGET");
  return named && *named ? named : "cuda:emulated";
}

Tensor drawn(const Param& param, const std::vector<int64_t>& sizes, const CudaCase& c, uint32_t seed) {
  Tensor t(param.type.dtype, sizes);
  if (param.role == ParamRole::output) return t;
  std::mt19937 draw(seed);
  std::uniform_real_distribution<double> real(c.low, c.high);
  for (int64_t i = 0; i < t.elements(); ++i)
    is_float(param.type.dtype) ? t.set_real(i, real(draw)) : t.set_integer(i, static_cast<int64_t>(draw() % 100));
  return t;
}

class OnDevice {
 public:
  OnDevice(const cuda::Driver& driver, cuda::CuFunction function, cuda::CuStream stream)
      : d_(driver), function_(function), stream_(stream) {}

  void check(const CudaCase& c, const KernelSpec& spec, const DeviceKernel& shape, const SymbolValues& symbols) {
    std::vector<Tensor> logical, packed;
    std::vector<DeviceMemory> memory;
    std::vector<cuda::CuPointer> addresses;
    for (size_t p = 0; p < spec.region.params.size(); ++p) {
      const Param& param = spec.region.params[p];
      logical.push_back(drawn(param, param.type.shape.evaluate(symbols), c, static_cast<uint32_t>(p + 1)));
      packed.push_back(pack(logical.back(), spec.layouts[p].layout));
      memory.emplace_back(d_, packed.back().bytes());
      addresses.push_back(memory.back().address());
      d_.check(d_.cuMemcpyHtoDAsync_v2(addresses.back(), packed.back().data(), packed.back().bytes(), stream_), "copy");
    }
    std::vector<int64_t> sizes;
    for (const std::string& s : spec.symbols) sizes.push_back(symbols.at(s));
    std::vector<void*> arguments;
    for (cuda::CuPointer& a : addresses) arguments.push_back(&a);
    for (int64_t& s : sizes) arguments.push_back(&s);
    std::vector<cuda::CuTensorMap> maps;
    for (const TensorMap& m : shape.maps)
      maps.push_back(cuda::encode(d_, m, addresses.at(static_cast<size_t>(m.buffer)), symbols));
    for (cuda::CuTensorMap& m : maps) arguments.push_back(&m);
    const auto grid = static_cast<unsigned>(shape.grid.evaluate(symbols));
    const cuda::CuLaunch launch{.grid = {grid, 1, 1},
                                .block = {static_cast<unsigned>(shape.block), 1, 1},
                                .shared_bytes = static_cast<unsigned>(shape.launch_shared.evaluate(symbols)),
                                .stream = stream_};
    d_.check(d_.cuLaunchKernelEx(&launch, function_, arguments.data(), nullptr), "launch");
    const std::vector<Tensor> want = interpret(spec.region, logical, symbols, Precision::exact);
    size_t next = 0;
    for (size_t p = 0; p < spec.region.params.size(); ++p) {
      if (spec.region.params[p].role != ParamRole::output) continue;
      Tensor got(packed[p].dtype(), packed[p].sizes());
      d_.check(d_.cuMemcpyDtoHAsync_v2(got.mutable_data(), addresses[p], got.bytes(), stream_), "copy");
      d_.check(d_.cuStreamSynchronize(stream_), "run");
      const Difference d = difference(unpack(got, spec.layouts[p].layout, logical[p].sizes()), want.at(next++));
      EXPECT_LE(d.max_abs, c.tolerance * std::max(d.max_reference, 1e-30)) << c.name << " output " << p;
    }
  }

 private:
  const cuda::Driver& d_;
  cuda::CuFunction function_;
  cuda::CuStream stream_;
};

/// The groups of EmulatedKernels, so that a compiler cache has their texts.
std::vector<std::vector<CudaCase>> groups_for(const TargetInfo& target) {
  std::vector<std::vector<CudaCase>> groups;
  for (const auto* group : case_groups()) groups.push_back(*group);
  groups.emplace_back();
  for (const CudaCase& c : hopper_cases())
    if (target.cuda_arch == "sm_90a" || (target.emulated && c.name == "tma_conv_strided")) groups.back().push_back(c);
  if (groups.back().empty()) groups.pop_back();
  return groups;
}

void check_on_device(const std::vector<CudaCase>& cases, const TargetInfo& target, const cuda::Driver& d,
                     cuda::CuStream stream) {
  const std::vector<KernelSpec> specs = specs_of(cases, target);
  std::vector<KernelSpec> distinct;
  std::map<std::string, size_t> place;
  for (const KernelSpec& spec : specs)
    if (place.emplace(kernel_symbol(spec), distinct.size()).second) distinct.push_back(spec);
  const LinkedCode code = cuda::generate(distinct, target, {});
  std::map<size_t, cuda::CuModule> modules;
  for (size_t i = 0; i < cases.size(); ++i) {
    const KernelCode& kernel = code.kernels.at(place.at(kernel_symbol(specs[i])));
    cuda::CuModule& module = modules[kernel.offset];
    if (!module) d.check(d.cuModuleLoadData(&module, code.bytes.data() + kernel.offset), "module");
    cuda::CuFunction function = nullptr;
    d.check(d.cuModuleGetFunction(&function, module, kernel.symbol.c_str()), "function");
    if (const auto most = static_cast<int>(kernel.device.launch_shared_most); most > 0)
      d.check(d.cuFuncSetAttribute(function, cuda::kMostLaunchShared, most), "shared memory");
    for (const SymbolValues& symbols : cases[i].bindings)
      OnDevice(d, function, stream).check(cases[i], specs[i], kernel.device, symbols);
  }
  for (auto& [offset, module] : modules) d.cuModuleUnload(module);
}

TEST(DeviceKernels, equal_the_interpreter) {
  const TargetInfo target = parse_target(device_target());
  const cuda::Driver& d = cuda::driver_for(target.name);
  cuda::CuDevice device = 0;
  cuda::CuContext context = nullptr;
  cuda::CuStream stream = nullptr;
  d.check(d.cuDeviceGet(&device, 0), "device");
  d.check(d.cuDevicePrimaryCtxRetain(&context, device), "context");
  d.check(d.cuCtxSetCurrent(context), "context");
  d.check(d.cuStreamCreate(&stream, 0), "stream");
  for (const std::vector<CudaCase>& cases : groups_for(target)) check_on_device(cases, target, d, stream);
  d.cuStreamDestroy_v2(stream);
  d.cuDevicePrimaryCtxRelease_v2(device);
}

TEST(FakeDriver, refuses_what_a_device_refuses) {
  const cuda::Driver& d = cuda::fake_driver();
  cuda::CuPointer memory = 0;
  cuda::CuStream stream = nullptr;
  EXPECT_NE(d.cuMemAlloc_v2(&memory, 64), 0) << "in no context";
  const DeviceContext context(d, 0);
  const InContext here(context);
  EXPECT_NE(d.cuMemAlloc_v2(&memory, 0), 0);
  ASSERT_EQ(d.cuMemAlloc_v2(&memory, 64), 0);
  ASSERT_EQ(d.cuStreamCreate(&stream, 0), 0);
  char bytes[128] = {};
  EXPECT_EQ(d.cuMemcpyHtoDAsync_v2(memory, bytes, 64, stream), 0);
  EXPECT_NE(d.cuMemcpyHtoDAsync_v2(memory, bytes, 65, stream), 0) << "behind the allocation";
  ASSERT_EQ(d.cuStreamBeginCapture_v2(stream, 0), 0);
  EXPECT_NE(d.cuStreamSynchronize(stream), 0) << "waiting while capturing";
  cuda::CuGraph graph = nullptr;
  ASSERT_EQ(d.cuStreamEndCapture(stream, &graph), 0);
  EXPECT_EQ(d.cuGraphDestroy(graph), 0);
  EXPECT_NE(d.cuGraphDestroy(graph), 0) << "twice";
  EXPECT_EQ(d.cuMemFree_v2(memory), 0);
  EXPECT_NE(d.cuMemFree_v2(memory), 0) << "twice";
  EXPECT_EQ(d.cuStreamDestroy_v2(stream), 0);
  EXPECT_NE(d.cuStreamSynchronize(stream), 0) << "after its end";
}

}  // namespace
}  // namespace opfuse::test
