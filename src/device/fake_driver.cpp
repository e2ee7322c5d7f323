// The driver's functions on the host. Memory is the host's, poisoned and closed to host code (fake_memory.hpp); streams
// run what they are given late (fake_streams.hpp); kernels run emulated. Handles are checked, so misuse is an error as
// on a device. There are two devices, so that arrays and streams of the wrong one can be told.
#include <elf.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "device/driver.hpp"
#include "device/emulation.hpp"
#include "device/fake_streams.hpp"
#include "device/fake_tensor_maps.hpp"

namespace opfuse::cuda {

struct CuModuleHandle {
  std::unique_ptr<EmulatedModule> module;
  std::map<std::string, std::unique_ptr<CuFunctionHandle>> functions;
  CuContext context = nullptr;
};
struct CuFunctionHandle {
  const EmulatedModule* module;
  EmulatedModule::Kernel kernel;
  std::vector<size_t> arguments;  ///< bytes of each
  CuContext context = nullptr;
  size_t most_shared = kPlainShared;  ///< that a launch may give
};

namespace {

constexpr size_t kDeviceBytes = size_t{1} << 40;
constexpr int kBlockShared = 99 << 10;  ///< the least of all architectures
constexpr unsigned kPortableCluster = 8;

FakeDevices& devices() { return FakeDevices::get(); }

CuResult launch_failed(std::string why) {
  fake_failure() = std::move(why);
  return kLaunchFailed;
}

void* host(CuPointer p) { return reinterpret_cast<void*>(static_cast<uintptr_t>(p)); }
CuPointer address(const void* p) { return static_cast<CuPointer>(reinterpret_cast<uintptr_t>(p)); }

CuResult allocate(CuPointer* memory, size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  if (bytes > kDeviceBytes) return kOutOfMemory;
  if (!fake_current_context()) return kInvalidContext;
  if (fake_captures() > 0) return kCaptureUnsupported;
  *memory = devices().memory.allocate(bytes, fake_current_context()->device);
  return *memory ? kSuccess : kOutOfMemory;
}

CuResult release(CuPointer memory) {
  if (fake_captures() > 0) return kCaptureUnsupported;
  devices().drain_all();
  return devices().memory.free(memory) ? kSuccess : kInvalidValue;
}

CuResult pointer_attribute(void* value, int attribute, CuPointer at) {
  const auto found = devices().memory.find(at);
  if (!found) return kInvalidValue;
  switch (attribute) {
    case kPointerMemory:
      return *static_cast<unsigned*>(value) = 2, kSuccess;
    case kPointerManaged:
      return *static_cast<unsigned*>(value) = 0, kSuccess;
    case kPointerDevice:
      return *static_cast<int*>(value) = found->device, kSuccess;
    case kPointerStart:
      return *static_cast<CuPointer*>(value) = found->start, kSuccess;
    case kPointerBytes:
      return *static_cast<size_t*>(value) = found->bytes, kSuccess;
    default:
      return kInvalidValue;
  }
}

/// An image carries no length: it ends where its section table ends.
size_t image_bytes(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  return header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
}

CuResult load_module(CuModule* module, const void* image) {
  const size_t bytes = image_bytes(image);
  if (bytes == 0) return kInvalidImage;
  if (!fake_current_context()) return kInvalidContext;
  try {
    auto loaded = std::make_unique<CuModuleHandle>();
    loaded->module = std::make_unique<EmulatedModule>(std::span(static_cast<const uint8_t*>(image), bytes));
    loaded->context = fake_current_context();
    *module = devices().add(std::move(loaded));
    return kSuccess;
  } catch (const EmulationError& e) {
    fake_failure() = e.message;
    return kInvalidImage;
  }
}

CuResult find_function(CuFunction* function, CuModule module, const char* name) {
  if (!devices().known(module)) return kInvalidHandle;
  const EmulatedModule::Kernel kernel = module->module->find(name);
  if (!kernel) return kNotFound;
  auto& slot = module->functions[name];
  if (!slot)
    slot.reset(new CuFunctionHandle{module->module.get(), kernel, module->module->arguments(name), module->context});
  *function = slot.get();
  return kSuccess;
}

/// 0: there is no such launch.
CuResult check_launch(const CuLaunch& l, const CuFunctionHandle& f, EmulatedLaunch& shape, bool& programmatic) {
  if (l.grid[0] == 0 || l.grid[1] != 1 || l.grid[2] != 1) return kInvalidValue;
  if (l.block[0] == 0 || l.block[0] > 1024 || l.block[1] != 1 || l.block[2] != 1) return kInvalidValue;
  if (l.shared_bytes > f.most_shared) return kInvalidValue;
  shape = {l.grid[0], l.block[0], l.shared_bytes, 1};
  for (unsigned i = 0; i < l.attribute_count; ++i) {
    const CuLaunchAttribute& a = l.attributes[i];
    if (a.id == kProgrammaticAttribute) {
      programmatic = a.value.programmatic != 0;
    } else if (a.id == kClusterAttribute) {
      shape.cluster = a.value.cluster[0];
      if (a.value.cluster[1] != 1 || a.value.cluster[2] != 1 || shape.cluster == 0 ||
          shape.cluster > kPortableCluster || shape.grid % shape.cluster != 0)
        return kInvalidClusterSize;
    } else {
      return kInvalidValue;
    }
  }
  return kSuccess;
}

CuResult launch(const CuLaunch* given, CuFunction f, void** arguments, void**) {
  EmulatedLaunch shape;
  FakeStep step;
  step.launch = true;
  if (const CuResult r = check_launch(*given, *f, shape, step.programmatic); r != kSuccess) return r;
  const CuStream stream = devices().stream(given->stream);
  if (!stream || stream->context != f->context) return kInvalidHandle;
  std::vector<CuTensorMap> values(f->arguments.size());  // the driver copies arguments when a launch is given
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&values[i], arguments[i], f->arguments[i]);
  step.run = [=](const std::function<CuResult()>& earlier) mutable {
    std::vector<void*> pointers;
    for (CuTensorMap& value : values) pointers.push_back(&value);
    static std::atomic<uint64_t> launches = 0;
    CuResult result = kSuccess;
    try {
      f->module->launch(f->kernel, shape, pointers.data(), ++launches, [&] { result = earlier(); });
      return result;
    } catch (const EmulationError& e) {
      return launch_failed(e.message);
    }
  };
  return devices().submit(given->stream, std::move(step));
}

CuResult copy(CuPointer to, CuPointer from, size_t bytes, CuStream stream) {
  return devices().submit(stream, {[=](const auto&) {
                            if (bytes) std::memcpy(host(to), host(from), bytes);
                            return static_cast<CuResult>(kSuccess);
                          }});
}

bool covers(CuPointer at, size_t bytes) { return devices().memory.covers(at, bytes); }

void add_devices(Driver& d) {
  d.cuDeviceGetCount = [](int* n) -> CuResult { return *n = FakeDevices::kCount, kSuccess; };
  d.cuDeviceGet = [](CuDevice* dev, int ordinal) -> CuResult {
    return *dev = ordinal, ordinal >= 0 && ordinal < FakeDevices::kCount ? kSuccess : kInvalidValue;
  };
  d.cuDeviceGetName = [](char* name, int bytes, CuDevice) -> CuResult {
    std::strncpy(name, "emulated device", static_cast<size_t>(bytes) - 1);
    return kSuccess;
  };
  d.cuDeviceGetAttribute = [](int* value, int attribute, CuDevice) -> CuResult {
    *value = attribute == 75 ? 8 : attribute == 76 ? 0 : 1;
    return kSuccess;
  };
  d.cuDevicePrimaryCtxRetain = [](CuContext* c, CuDevice device) -> CuResult {
    return *c = &devices().contexts[device], devices().retain();
  };
  d.cuDevicePrimaryCtxRelease_v2 = [](CuDevice) -> CuResult { return devices().release(); };
  d.cuCtxSetCurrent = [](CuContext c) -> CuResult { return fake_current_context() = c, kSuccess; };
  d.cuCtxGetCurrent = [](CuContext* c) -> CuResult { return *c = fake_current_context(), kSuccess; };
}

void add_memory(Driver& d) {
  d.cuMemAlloc_v2 = allocate;
  d.cuMemFree_v2 = release;
  d.cuPointerGetAttribute = pointer_attribute;
  d.cuMemcpyHtoDAsync_v2 = [](CuPointer to, const void* from, size_t n, CuStream s) -> CuResult {
    return covers(to, n) ? copy(to, address(from), n, s) : kInvalidValue;
  };
  d.cuMemcpyDtoHAsync_v2 = [](void* to, CuPointer from, size_t n, CuStream s) -> CuResult {
    return covers(from, n) ? copy(address(to), from, n, s) : kInvalidValue;
  };
  d.cuMemcpyDtoDAsync_v2 = [](CuPointer to, CuPointer from, size_t n, CuStream s) -> CuResult {
    return covers(from, n) && covers(to, n) ? copy(to, from, n, s) : kInvalidValue;
  };
}

Driver make_driver() {
  Driver d;
  d.path = "the emulated device";
  d.cuInit = [](unsigned) -> CuResult { return kSuccess; };
  d.cuDriverGetVersion = [](int* v) -> CuResult { return *v = 13000, kSuccess; };
  d.cuGetErrorName = [](CuResult r, const char** text) -> CuResult {
    *text = r == kOutOfMemory ? "out of memory" : r == kLaunchFailed ? "launch failed" : "invalid use";
    return kSuccess;
  };
  d.cuGetErrorString = [](CuResult r, const char** text) -> CuResult {
    *text = r == kLaunchFailed || r == kInvalidImage ? fake_failure().c_str() : "refused by the emulated device";
    return kSuccess;
  };
  add_devices(d);
  add_memory(d);
  add_fake_streams(d);
  d.cuModuleLoadData = load_module;
  d.cuModuleUnload = [](CuModule m) {
    devices().drain_all();
    return devices().remove(m);
  };
  d.cuModuleGetFunction = find_function;
  d.cuFuncSetAttribute = [](CuFunction f, int attribute, int value) -> CuResult {
    if (attribute != kMostLaunchShared || value < 0 || value > kBlockShared) return kInvalidValue;
    return f->most_shared = static_cast<size_t>(value), kSuccess;
  };
  d.cuLaunchKernelEx = launch;
  d.cuTensorMapEncodeTiled = fake_tensor_map_tiled;
  d.cuTensorMapEncodeIm2col = fake_tensor_map_image;
  return d;
}

}  // namespace

const Driver& fake_driver() {
  static const Driver driver = make_driver();
  return driver;
}

size_t fake_driver_live() { return FakeDevices::get().live(); }

}  // namespace opfuse::cuda
