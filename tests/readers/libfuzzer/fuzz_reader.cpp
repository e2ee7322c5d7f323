// libFuzzer's entry: environment OPFUSE_READER names the reader. `OPFUSE_SEEDS=FOLDER` writes its seeds there and ends.
// An internal error is a crash as any other.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "opfuse/error.hpp"
#include "readers/readers.hpp"

namespace {

const opfuse::readers::Reader& reader() {
  static const opfuse::readers::Reader& named = [&]() -> const opfuse::readers::Reader& {
    const char* name = std::getenv("OPFUSE_READER");
    return opfuse::readers::reader_named(name ? name : "");
  }();
  return named;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("OPFUSE_SEEDS");
  if (!folder) return 0;
  int number = 0;
  for (const std::string& seed : reader().seeds())
    std::ofstream(std::string(folder) + "/seed" + std::to_string(number++), std::ios::binary) << seed;
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    reader().read({reinterpret_cast<const char*>(data), size});
  } catch (const opfuse::Error& error) {
    if (error.diagnostic().name != "internal") return 0;
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}
