// NVRTC by dlopen, with prototypes of our own: no NVIDIA header is needed to build, no library to start. Searched, in
// this order: the file named by OPFUSE_NVRTC; the dynamic linker's own places; $CUDA_HOME, $CUDA_PATH and
// /usr/local/cuda; the wheels nvidia-cuda-nvrtc of the active Python environment, the user and the system.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "base/fail.hpp"
#include "cuda/compilers.hpp"

namespace opfuse::cuda {
namespace {

namespace fs = std::filesystem;

using Program = struct ProgramHandle*;
struct Api {
  const char* (*error_text)(int) = nullptr;
  int (*version)(int*, int*) = nullptr;
  int (*create)(Program*, const char* source, const char* name, int, const char* const*, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int options, const char* const*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  std::string path, searched;
  bool found() const { return cubin != nullptr; }
};

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

void add_wheels(const fs::path& lib, std::vector<std::string>& paths) {
  std::error_code ignored;
  std::vector<fs::path> packages;
  for (const auto& python : fs::directory_iterator(lib, ignored))
    if (python.path().filename().string().starts_with("python3"))
      for (const char* name : {"site-packages", "dist-packages"}) packages.push_back(python.path() / name);
  for (const fs::path& package : packages)
    for (const char* folder : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"})
      for (const char* name : kNames) {
        const fs::path file = package / folder / name;
        if (fs::exists(file, ignored)) paths.push_back(file.string());
      }
}

std::vector<std::string> candidates() {
  if (const char* named = std::getenv("OPFUSE_NVRTC"); named && *named) return {named};
  std::vector<std::string> paths(std::begin(kNames), std::end(kNames));
  const auto toolkit = [&](const std::string& root) {
    for (const char* name : kNames) paths.push_back(root + "/lib64/" + name);
  };
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable); root && *root) toolkit(root);
  toolkit("/usr/local/cuda");
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment && *environment)
    add_wheels(fs::path(environment) / "lib", paths);
  if (const char* home = std::getenv("HOME"); home && *home) add_wheels(fs::path(home) / ".local/lib", paths);
  add_wheels("/usr/local/lib", paths);
  add_wheels("/usr/lib", paths);
  return paths;
}

Api open_nvrtc() {
  Api api;
  for (const std::string& path : candidates()) {
    api.searched += (api.searched.empty() ? "" : ", ") + path;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    if (find(api.error_text, "nvrtcGetErrorString") && find(api.version, "nvrtcVersion") &&
        find(api.create, "nvrtcCreateProgram") && find(api.destroy, "nvrtcDestroyProgram") &&
        find(api.compile, "nvrtcCompileProgram") && find(api.log_size, "nvrtcGetProgramLogSize") &&
        find(api.log, "nvrtcGetProgramLog") && find(api.cubin_size, "nvrtcGetCUBINSize") &&
        find(api.cubin, "nvrtcGetCUBIN")) {
      api.path = path;
      return api;
    }
    dlclose(library);
    api.cubin = nullptr;
  }
  return api;
}

const Api& nvrtc() {
  static const Api api = open_nvrtc();
  return api;
}

struct Compilation {
  const Api& api;
  Program program = nullptr;
  ~Compilation() {
    if (program) api.destroy(&program);
  }
  std::string log() const {
    size_t size = 0;
    if (api.log_size(program, &size) != 0 || size == 0) return {};
    std::string text(size, '\0');
    api.log(program, text.data());
    text.resize(size - 1);
    return text;
  }
};

/// The number before `what` in ptxas's report; the largest where there are several.
int64_t reported(const std::string& log, std::string_view what) {
  int64_t most = 0;
  for (size_t at = log.find(what); at != std::string::npos; at = log.find(what, at + 1)) {
    size_t begin = at;
    while (begin > 0 && log[begin - 1] == ' ') --begin;
    size_t digits = begin;
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(log[digits - 1]))) --digits;
    if (digits < begin) most = std::max<int64_t>(most, std::atoll(log.substr(digits, begin - digits).c_str()));
  }
  return most;
}

}  // namespace

bool have_nvrtc() { return nvrtc().found(); }

std::string nvrtc_state() {
  const Api& api = nvrtc();
  if (!api.found()) return "nvrtc: not found (searched " + api.searched + ")";
  int major = 0, minor = 0;
  api.version(&major, &minor);
  return fmt::format("{} (version {}.{})", api.path, major, minor);
}

CompiledKernel compile_for_device(const std::string& text, const std::string& name, const std::string& arch) {
  const Api& api = nvrtc();
  if (!api.found())
    throw fail(E::missing_compiler, "NVRTC, the compiler of CUDA kernels, could not be opened")
        .operand("searched: " + api.searched)
        .hint("install the CUDA toolkit or `pip install nvidia-cuda-nvrtc`, or set OPFUSE_NVRTC to libnvrtc.so.13");
  Compilation run{api};
  const std::string file = name + ".cu";
  if (const int e = api.create(&run.program, text.c_str(), file.c_str(), 0, nullptr, nullptr); e != 0)
    throw fail(E::codegen_failed, "NVRTC: {}", api.error_text(e));
  const std::string target = "--gpu-architecture=" + arch;
  // no contraction: a*b+c is fused where the generator wrote fma, on every target
  const char* options[] = {target.c_str(), "--std=c++17", "--fmad=false", "--ptxas-options=-v"};
  const int result = api.compile(run.program, std::size(options), options);
  const std::string log = run.log();
  if (result != 0)
    throw fail(E::codegen_failed, "NVRTC refused kernel {}: {}\n{}", name, api.error_text(result), log.substr(0, 4000));
  CompiledKernel kernel;
  size_t size = 0;
  if (api.cubin_size(run.program, &size) != 0 || size == 0)
    throw fail(E::codegen_failed, "NVRTC made no cubin of kernel {} for {}", name, arch);
  kernel.image.resize(size);
  api.cubin(run.program, reinterpret_cast<char*>(kernel.image.data()));
  kernel.registers = static_cast<int>(reported(log, "registers"));
  kernel.shared_bytes = reported(log, "bytes smem");
  kernel.spill_bytes = reported(log, "bytes spill stores") + reported(log, "bytes spill loads");
  return kernel;
}

}  // namespace opfuse::cuda
