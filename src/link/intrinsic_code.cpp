// C becomes an object here; LLVM IR is the generator's to compile; objects and archives are taken as they are.
#include "link/intrinsic_code.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/fail.hpp"
#include "base/file_bytes.hpp"
#include "base/temporary_folder.hpp"
#include "cpu/intrinsic/intrinsic.hpp"

namespace opfuse {
namespace {

std::string compiler() {
  if (const char* named = std::getenv("CC"); named && *named) return named;
  const char* const path = std::getenv("PATH");
  const std::string folders = path ? path : "";
  for (const char* name : {"cc", "gcc", "clang"})
    for (size_t at = 0; at <= folders.size();) {
      const size_t end = std::min(folders.find(':', at), folders.size());
      if (access((folders.substr(at, end - at) + "/" + name).c_str(), X_OK) == 0) return name;
      at = end + 1;
    }
  throw fail(E::missing_compiler, "a tile in C needs a C compiler, and none is installed")
      .hint("set CC, install gcc, or give the tile as LLVM IR (.ll) or an object (.o)");
}

/// Self-contained: no calls that the compiler makes up, no guards, no tables of unwinding.
std::string object_of_c(const Intrinsic& tile, const TargetInfo& target) {
  const TemporaryFolder folder;
  const std::string source = folder.path("tile.c"), object = folder.path("tile.o"), log = folder.path("log");
  std::ofstream(source) << "#line 1 \"" << tile.path << "\"\n" << tile.bytes;
  const std::string with = compiler();
  const std::string command = fmt::format(
      "{} -O3 -w -march={} -fPIC -ffreestanding -fno-builtin -fno-tree-loop-distribute-patterns -fvisibility=hidden "
      "-fno-stack-protector "
      "-fno-asynchronous-unwind-tables -c -o '{}' '{}' 2>'{}'",
      with, target.llvm_cpu, object, source, log);
  const int status = std::system(command.c_str());
  std::string bytes = file_bytes(object).value_or("");
  if (status != 0 || bytes.empty())
    throw fail(E::codegen_failed, "{} refused the tile {}:\n{}", with, tile.path,
               file_bytes(log).value_or("").substr(0, 4000));
  return bytes;
}

IntrinsicCode code_of(const Intrinsic& tile, const TargetInfo& target) {
  IntrinsicCode code{tile.symbol.text, "", "", tile.path};
  if (tile.path.ends_with(".c"))
    code.object = object_of_c(tile, target);
  else if (tile.path.ends_with(".ll"))
    code.text = tile.bytes;
  else
    code.object = tile.bytes;
  return code;
}

}  // namespace

std::map<int64_t, IntrinsicCode> intrinsics_of(const std::vector<KernelSpec>& kernels, const TargetInfo& target) {
  std::map<int64_t, IntrinsicCode> codes;
  for (const KernelSpec& kernel : kernels) {
    if (kernel.schedule.skeleton != "intrinsic") continue;
    const int64_t composite = kernel.schedule.get("composite", -1);
    if (!codes.contains(composite)) codes[composite] = code_of(intrinsic_at(target, composite), target);
  }
  return codes;
}

}  // namespace opfuse
