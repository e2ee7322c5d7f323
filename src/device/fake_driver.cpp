// The driver's functions on the host. Memory is the host's, poisoned; streams run what they are given at once, or
// record it while they are captured; kernels run emulated. Handles are checked, so misuse is an error as on a device.
#include <elf.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "device/driver.hpp"
#include "device/emulation.hpp"
#include "device/fake_tensor_maps.hpp"

namespace opfuse::cuda {

struct CuModuleHandle {
  std::unique_ptr<EmulatedModule> module;
  std::map<std::string, std::unique_ptr<CuFunctionHandle>> functions;
};
struct CuFunctionHandle {
  const EmulatedModule* module;
  EmulatedModule::Kernel kernel;
  std::vector<size_t> arguments;      ///< bytes of each
  size_t most_shared = kPlainShared;  ///< that a launch may give
};
struct CuGraphHandle {
  std::vector<std::function<CuResult()>> steps;
};
struct CuGraphExecHandle {
  std::vector<std::function<CuResult()>> steps;
};
struct CuStreamHandle {
  std::unique_ptr<CuGraphHandle> captured;  ///< set while capturing
};
struct CuEventHandle {
  std::chrono::steady_clock::time_point time{};
  bool recorded = false;
};

namespace {

enum Result : CuResult {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidImage = 200,
  kInvalidHandle = 400,
  kNotFound = 500,
  kLaunchFailed = 719,
  kCaptureUnsupported = 900
};

constexpr size_t kDeviceBytes = size_t{1} << 40;
constexpr int kBlockShared = 99 << 10;  ///< the least of all architectures

thread_local std::string failure;  ///< the words of the calling thread's last one

/// Live handles and memory of the fake device.
struct Device {
  std::mutex mutex;
  std::map<CuPointer, size_t> memory;
  std::set<const void*> handles;
  std::atomic<uint64_t> launches = 0;
  size_t retained = 0;  ///< times that the context was

  template <class T>
  T* add(std::unique_ptr<T> handle) {
    const std::lock_guard lock(mutex);
    handles.insert(handle.get());
    return handle.release();
  }
  bool known(const void* handle) {
    const std::lock_guard lock(mutex);
    return handles.count(handle) > 0;
  }
  template <class T>
  CuResult remove(T* handle) {
    {
      const std::lock_guard lock(mutex);
      if (handles.erase(handle) == 0) return kInvalidHandle;
    }
    delete handle;
    return kSuccess;
  }
  bool covers(CuPointer at, size_t bytes) {
    const std::lock_guard lock(mutex);
    auto it = memory.upper_bound(at);
    if (it == memory.begin()) return bytes == 0;
    --it;
    return at - it->first + bytes <= it->second;
  }
  CuResult retain() {
    const std::lock_guard lock(mutex);
    ++retained;
    return kSuccess;
  }
  CuResult release() {
    const std::lock_guard lock(mutex);
    if (retained == 0) return kInvalidValue;
    --retained;
    return kSuccess;
  }
  size_t live() {
    const std::lock_guard lock(mutex);
    return memory.size() + handles.size() + retained;
  }
};

Device& device() {
  static Device instance;
  return instance;
}

CuResult launch_failed(std::string why) {
  failure = std::move(why);
  return kLaunchFailed;
}

void* host(CuPointer p) { return reinterpret_cast<void*>(static_cast<uintptr_t>(p)); }

CuResult submit(CuStream stream, std::function<CuResult()> step) {
  if (!device().known(stream)) return kInvalidHandle;
  if (!stream->captured) return step();
  stream->captured->steps.push_back(std::move(step));
  return kSuccess;
}

CuResult allocate(CuPointer* memory, size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  void* block = nullptr;
  if (bytes > kDeviceBytes) return kOutOfMemory;
  if (posix_memalign(&block, 256, bytes) != 0) return kOutOfMemory;
  std::memset(block, 0xFF, bytes);
  *memory = static_cast<CuPointer>(reinterpret_cast<uintptr_t>(block));
  const std::lock_guard lock(device().mutex);
  device().memory[*memory] = bytes;
  return kSuccess;
}

CuResult release(CuPointer memory) {
  {
    const std::lock_guard lock(device().mutex);
    if (device().memory.erase(memory) == 0) return kInvalidValue;
  }
  std::free(host(memory));
  return kSuccess;
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
  try {
    auto loaded = std::make_unique<CuModuleHandle>();
    loaded->module = std::make_unique<EmulatedModule>(std::span(static_cast<const uint8_t*>(image), bytes));
    *module = device().add(std::move(loaded));
    return kSuccess;
  } catch (const EmulationError& e) {
    failure = e.message;
    return kInvalidImage;
  }
}

CuResult find_function(CuFunction* function, CuModule module, const char* name) {
  if (!device().known(module)) return kInvalidHandle;
  const EmulatedModule::Kernel kernel = module->module->find(name);
  if (!kernel) return kNotFound;
  auto& slot = module->functions[name];
  if (!slot) slot.reset(new CuFunctionHandle{module->module.get(), kernel, module->module->arguments(name)});
  *function = slot.get();
  return kSuccess;
}

CuResult launch(CuFunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                unsigned shared, CuStream stream, void** arguments, void**) {
  if (gx == 0 || gy != 1 || gz != 1 || bx == 0 || bx > 1024 || by != 1 || bz != 1) return kInvalidValue;
  if (shared > f->most_shared) return kInvalidValue;
  std::vector<CuTensorMap> values(f->arguments.size());  // the driver copies arguments when a launch is given
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&values[i], arguments[i], f->arguments[i]);
  return submit(stream, [=]() mutable {
    std::vector<void*> pointers;
    for (CuTensorMap& value : values) pointers.push_back(&value);
    try {
      f->module->launch(f->kernel, gx, bx, shared, pointers.data(), ++device().launches);
      return static_cast<CuResult>(kSuccess);
    } catch (const EmulationError& e) {
      return launch_failed(e.message);
    }
  });
}

CuResult copy(CuPointer to, CuPointer from, size_t bytes, CuStream stream) {
  return submit(stream, [=] {
    if (bytes) std::memcpy(host(to), host(from), bytes);
    return static_cast<CuResult>(kSuccess);
  });
}

CuPointer address(const void* p) { return static_cast<CuPointer>(reinterpret_cast<uintptr_t>(p)); }

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
    *text = r == kLaunchFailed || r == kInvalidImage ? failure.c_str() : "refused by the emulated device";
    return kSuccess;
  };
  d.cuDeviceGetCount = [](int* n) -> CuResult { return *n = 1, kSuccess; };
  d.cuDeviceGet = [](CuDevice* dev, int ordinal) -> CuResult {
    return *dev = 0, ordinal == 0 ? kSuccess : kInvalidValue;
  };
  d.cuDeviceGetName = [](char* name, int bytes, CuDevice) -> CuResult {
    std::strncpy(name, "emulated device", static_cast<size_t>(bytes) - 1);
    return kSuccess;
  };
  d.cuDeviceGetAttribute = [](int* value, int attribute, CuDevice) -> CuResult {
    *value = attribute == 75 ? 8 : attribute == 76 ? 0 : 1;
    return kSuccess;
  };
  d.cuDevicePrimaryCtxRetain = [](CuContext* c, CuDevice) -> CuResult { return *c = nullptr, device().retain(); };
  d.cuDevicePrimaryCtxRelease_v2 = [](CuDevice) -> CuResult { return device().release(); };
  d.cuCtxSetCurrent = [](CuContext) -> CuResult { return kSuccess; };
  d.cuMemAlloc_v2 = allocate;
  d.cuMemFree_v2 = release;
  d.cuMemcpyHtoDAsync_v2 = [](CuPointer to, const void* from, size_t n, CuStream s) -> CuResult {
    return device().covers(to, n) ? copy(to, address(from), n, s) : kInvalidValue;
  };
  d.cuMemcpyDtoHAsync_v2 = [](void* to, CuPointer from, size_t n, CuStream s) -> CuResult {
    return device().covers(from, n) ? copy(address(to), from, n, s) : kInvalidValue;
  };
  d.cuMemcpyDtoDAsync_v2 = [](CuPointer to, CuPointer from, size_t n, CuStream s) -> CuResult {
    return device().covers(from, n) && device().covers(to, n) ? copy(to, from, n, s) : kInvalidValue;
  };
  d.cuStreamCreate = [](CuStream* s, unsigned) -> CuResult {
    return *s = device().add(std::make_unique<CuStreamHandle>()), kSuccess;
  };
  d.cuStreamDestroy_v2 = [](CuStream s) { return device().remove(s); };
  d.cuStreamSynchronize = [](CuStream s) -> CuResult {
    return !device().known(s) ? kInvalidHandle : s->captured ? kCaptureUnsupported : kSuccess;
  };
  d.cuStreamBeginCapture_v2 = [](CuStream s, int) -> CuResult {
    if (!device().known(s) || s->captured) return kInvalidValue;
    s->captured = std::make_unique<CuGraphHandle>();
    return kSuccess;
  };
  d.cuStreamEndCapture = [](CuStream s, CuGraph* graph) -> CuResult {
    if (!device().known(s) || !s->captured) return kInvalidValue;
    *graph = device().add(std::move(s->captured));
    return kSuccess;
  };
  d.cuGraphInstantiateWithFlags = [](CuGraphExec* exec, CuGraph graph, unsigned long long) -> CuResult {
    if (!device().known(graph)) return kInvalidHandle;
    auto made = std::make_unique<CuGraphExecHandle>();
    made->steps = graph->steps;
    return *exec = device().add(std::move(made)), kSuccess;
  };
  d.cuGraphLaunch = [](CuGraphExec exec, CuStream s) -> CuResult {
    if (!device().known(exec) || !device().known(s)) return kInvalidHandle;
    for (const auto& step : exec->steps)
      if (const CuResult r = step(); r != kSuccess) return r;
    return kSuccess;
  };
  d.cuGraphDestroy = [](CuGraph g) { return device().remove(g); };
  d.cuGraphExecDestroy = [](CuGraphExec g) { return device().remove(g); };
  d.cuModuleLoadData = load_module;
  d.cuModuleUnload = [](CuModule m) { return device().remove(m); };
  d.cuModuleGetFunction = find_function;
  d.cuFuncSetAttribute = [](CuFunction f, int attribute, int value) -> CuResult {
    if (attribute != kMostLaunchShared || value < 0 || value > kBlockShared) return kInvalidValue;
    return f->most_shared = static_cast<size_t>(value), kSuccess;
  };
  d.cuLaunchKernel = launch;
  d.cuTensorMapEncodeTiled = fake_tensor_map_tiled;
  d.cuTensorMapEncodeIm2col = fake_tensor_map_image;
  d.cuEventCreate = [](CuEvent* e, unsigned) -> CuResult {
    return *e = device().add(std::make_unique<CuEventHandle>()), kSuccess;
  };
  d.cuEventDestroy_v2 = [](CuEvent e) { return device().remove(e); };
  d.cuEventRecord = [](CuEvent e, CuStream s) -> CuResult {
    if (!device().known(e)) return kInvalidHandle;
    return submit(s, [e] {
      e->time = std::chrono::steady_clock::now();
      e->recorded = true;
      return static_cast<CuResult>(kSuccess);
    });
  };
  d.cuEventSynchronize = [](CuEvent e) -> CuResult {
    return device().known(e) && e->recorded ? kSuccess : kInvalidHandle;
  };
  d.cuEventElapsedTime = [](float* ms, CuEvent a, CuEvent b) -> CuResult {
    if (!device().known(a) || !device().known(b) || !a->recorded || !b->recorded) return kInvalidHandle;
    *ms = std::chrono::duration<float, std::milli>(b->time - a->time).count();
    return kSuccess;
  };
  return d;
}

}  // namespace

const Driver& fake_driver() {
  static const Driver driver = make_driver();
  return driver;
}

size_t fake_driver_live() { return device().live(); }

}  // namespace opfuse::cuda
