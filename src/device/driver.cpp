// Opening libcuda. Searched, in this order: the file named by OPFUSE_LIBCUDA, the dynamic linker's own places, and
// where distributions and containers put the driver.
#include "device/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "base/fail.hpp"

namespace opfuse::cuda {
namespace {

std::vector<std::string> candidates() {
  if (const char* named = std::getenv("OPFUSE_LIBCUDA"); named && *named) return {named};
  return {"libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
          "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"};
}

struct Opened {
  Driver driver;
  std::string problem;  ///< empty: usable
};

Opened open_driver() {
  Opened opened;
  std::string searched;
  void* library = nullptr;
  for (const std::string& path : candidates()) {
    searched += (searched.empty() ? "" : ", ") + path;
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    opened.driver.path = path;
    break;
  }
  if (!library) {
    opened.problem = "cuda: no driver found (searched " + searched + ")";
    return opened;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (!function && opened.problem.empty())
      opened.problem = fmt::format("cuda: the driver {} lacks {}; it is too old", opened.driver.path, name);
  };
#define OPFUSE_CUDA(name, arguments) find(opened.driver.name, #name);
#include "device/driver_functions.def"
#undef OPFUSE_CUDA
  if (!opened.problem.empty()) return opened;
  const char* text = nullptr;
  if (const CuResult result = opened.driver.cuInit(0); result != 0) {
    opened.driver.cuGetErrorString(result, &text);
    opened.problem =
        fmt::format("cuda: the driver {} does not start: {}", opened.driver.path, text ? text : "unknown error");
  }
  return opened;
}

const Opened& opened() {
  static const Opened once = open_driver();
  return once;
}

}  // namespace

std::string Driver::words(CuResult result) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  return fmt::format("{} ({})", text ? text : "unknown error", name ? name : "?");
}

void Driver::check(CuResult result, std::string_view doing) const {
  if (result != 0) throw fail(E::device_failed, "cuda: {} failed: {}", doing, words(result));
}

const Driver& real_driver() {
  const Opened& o = opened();
  if (!o.problem.empty())
    throw fail(E::no_device, "{}", o.problem)
        .hint(
            "run on a machine with an NVIDIA GPU and its driver, or compile with --target cuda:emulated (slow, for "
            "tests)");
  return o.driver;
}

const Driver& driver_for(std::string_view target) { return target == "cuda:emulated" ? fake_driver() : real_driver(); }

std::string driver_state() {
  const Opened& o = opened();
  if (!o.problem.empty()) return o.problem;
  int version = 0, count = 0;
  o.driver.cuDriverGetVersion(&version);
  o.driver.cuDeviceGetCount(&count);
  std::string text = fmt::format("{} (CUDA {}.{})", o.driver.path, version / 1000, version % 1000 / 10);
  for (int i = 0; i < count; ++i) {
    CuDevice device = 0;
    char name[128] = "";
    int major = 0, minor = 0;
    o.driver.cuDeviceGet(&device, i);
    o.driver.cuDeviceGetName(name, sizeof name, device);
    o.driver.cuDeviceGetAttribute(&major, 75, device);  // compute capability
    o.driver.cuDeviceGetAttribute(&minor, 76, device);
    text += fmt::format(", {} (sm_{}{})", name, major, minor);
  }
  return text + (count == 0 ? ", no device" : "");
}

}  // namespace opfuse::cuda
