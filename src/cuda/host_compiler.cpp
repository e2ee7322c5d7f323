// Kernel text -> shared object of the host: the emulation header, the helpers that are not PTX, the kernels, and for
// each an entry that takes its arguments by address. The compiler is $CXX, else c++, g++ or clang++, whichever runs.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/fail.hpp"
#include "base/file_bytes.hpp"
#include "base/sanitizers.hpp"
#include "base/temporary_folder.hpp"
#include "cuda/compilers.hpp"
#include "cuda/emulation_text.hpp"
#include "cuda/helpers.hpp"

namespace opfuse::cuda {
namespace {

std::string compiler() {
  if (const char* named = std::getenv("CXX"); named && *named) return named;
  for (const char* name : {"c++", "g++", "clang++"}) {
    const char* path = std::getenv("PATH");
    std::string folders = path ? path : "";
    for (size_t at = 0; at <= folders.size();) {
      const size_t end = std::min(folders.find(':', at), folders.size());
      if (access((folders.substr(at, end - at) + "/" + name).c_str(), X_OK) == 0) return name;
      at = end + 1;
    }
  }
  throw fail(E::missing_compiler, "the emulated device needs a C++ compiler, and none is installed")
      .hint("set CXX, or install g++; cuda:sm_XX targets need NVRTC instead");
}

/// The first ones by name; the compiler's words name the one that is wrong.
std::string names_of(const std::vector<KernelText>& kernels) {
  std::string names;
  for (size_t i = 0; i < kernels.size() && i < 4; ++i) names += (i ? ", " : "") + kernels[i].symbol;
  return kernels.size() > 4 ? fmt::format("{} and {} more", names, kernels.size() - 4) : names;
}

std::string entry_text(const KernelText& k) {
  std::string out = fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) void {}_emulated(void** a) {{\n  {}(", k.symbol, k.symbol);
  for (size_t i = 0; i < k.arguments.size(); ++i)
    out += fmt::format("{}*({}*)a[{}]", i ? ", " : "", k.arguments[i].first, i);
  out += fmt::format(");\n}}\nextern \"C\" __attribute__((visibility(\"default\"))) unsigned {}_arguments[] = {{",
                     k.symbol);
  for (const auto& [type, name] : k.arguments) out += fmt::format("sizeof({}), ", type);
  return out + "0};\n";
}

}  // namespace

std::string emulation_source(const std::vector<KernelText>& kernels) {
  std::string out = kEmulationText;
  std::set<std::string> used;
  for (const KernelText& k : kernels) used.insert(k.helpers.begin(), k.helpers.end());
  for (const Helper& helper : all_helpers())
    if (used.count(helper.name) && !helper.primitive) out += helper.text;
  for (size_t i = 0; i < kernels.size(); ++i)
    out += fmt::format("namespace kernel_{} {{\n{}{}{}}}\n", i, kernels[i].constants, kernels[i].function,
                       entry_text(kernels[i]));
  return out;
}

std::vector<uint8_t> compile_for_emulation(const std::vector<KernelText>& kernels) {
  const TemporaryFolder folder;
  const std::string source = folder.path("kernels.cpp"), library = folder.path("kernels.so"), log = folder.path("log");
  std::ofstream(source) << emulation_source(kernels);
#if defined(OPFUSE_ASAN)
  const char *compiled = "-fsanitize=address", *linked = compiled;  // then only copies and matrices report themselves
#else
  const char *compiled = "-fsanitize=thread", *linked = "";  // its calls, which emulation.h defines: no runtime
#endif
  const std::string units =
      std::string(__builtin_cpu_supports("fma") ? "-mfma" : "") + (__builtin_cpu_supports("f16c") ? " -mf16c" : "");
  const std::string with = compiler();
  // in the folder: a compiler cache ($CXX "ccache c++") knows a text by its content, not by where it lay
  const std::string command = fmt::format(
      "cd '{}' && {{ {} -std=c++17 -O1 -w -fPIC -ffp-contract=off -fvisibility=hidden -fno-exceptions {} {} -c "
      "-o kernels.o kernels.cpp && {} -shared {} -o kernels.so kernels.o; }} 2>log",
      folder.path(""), with, compiled, units, with, linked);
  const int status = std::system(command.c_str());
  const std::string image = file_bytes(library).value_or("");
  if (status != 0 || image.empty())
    throw fail(E::codegen_failed, "the host compiler {} refused the emulated kernels {}:\n{}", with, names_of(kernels),
               file_bytes(log).value_or("").substr(0, 4000));
  return {image.begin(), image.end()};
}

}  // namespace opfuse::cuda
