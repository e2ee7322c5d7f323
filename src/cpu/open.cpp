// generate(): opens the code generator library on first use and calls it. Searched, in this order:
// the file named by OPFUSE_LLVM_LIB, the folder of the running library or executable, its ../lib.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "base/fail.hpp"
#include "base/file_bytes.hpp"
#include "base/hash.hpp"
#include "cpu/generator.hpp"
#include "cpu/llvm_entry.hpp"

namespace opfuse {
namespace {

std::vector<std::string> candidates() {
  if (const char* named = std::getenv("OPFUSE_LLVM_LIB"); named && *named) return {named};
  std::vector<std::string> paths;
  Dl_info info{};
  const auto add = [&](const std::filesystem::path& folder) {
    for (const auto& path : {folder / kLlvmLibraryName, folder / ".." / "lib" / kLlvmLibraryName,
                             folder / ".." / ".." / "lib" / kLlvmLibraryName})
      paths.push_back(path.lexically_normal().string());
  };
  std::error_code ignored;
  if (dladdr(reinterpret_cast<const void*>(&generate), &info) && info.dli_fname)
    add(std::filesystem::weakly_canonical(info.dli_fname, ignored).parent_path());
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!executable.empty()) add(executable.parent_path());
  return paths;
}

LlvmEntry open_library() {
  std::string searched, problem;
  for (const std::string& path : candidates()) {
    searched += (searched.empty() ? "" : ", ") + path;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      problem = dlerror();
      continue;
    }
    if (void* entry = dlsym(library, kLlvmEntryName)) return reinterpret_cast<LlvmEntry>(entry);
    problem = path + " has no " + kLlvmEntryName;
  }
  auto error = fail(E::missing_compiler, "the code generator {} could not be opened", kLlvmLibraryName);
  error.operand("searched: " + searched);
  if (!problem.empty()) error.operand(problem);
  throw error.hint("set OPFUSE_LLVM_LIB to the file, or install LLVM 19's shared library (libllvm19)");
}

}  // namespace

/// Of the file, which is opened once: it is read once too.
std::string generator_fingerprint() {
  static const std::string fingerprint = [] {
    for (const std::string& path : candidates())
      if (const auto bytes = file_bytes(path)) return hash_text(*bytes).hex();
    return std::string();
  }();
  return fingerprint;
}

namespace {

LlvmRequest answered(const std::vector<KernelSpec>& kernels, const TargetInfo& target, const CodegenOptions& options) {
  static const LlvmEntry entry = open_library();
  LlvmRequest request;
  request.kernels = &kernels;
  request.target = &target;
  request.options = &options;
  if (entry(&request) != 0)
    throw fail(E::missing_compiler, "{} belongs to another build of opfuse", kLlvmLibraryName)
        .hint("use the library that was built with this program");
  if (request.error) throw Error(*request.error);
  return request;
}

}  // namespace

LinkedCode generate(const std::vector<KernelSpec>& kernels, const TargetInfo& target, const CodegenOptions& options) {
  return answered(kernels, target, options).result;
}

std::vector<std::string> emitter_names() { return answered({}, {}, {}).emitters; }

}  // namespace opfuse
