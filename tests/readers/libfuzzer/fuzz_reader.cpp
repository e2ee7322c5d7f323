// libFuzzer's entry: environment OPFUSE_READER names the reader. An internal error is a crash as any other.
#include <cstdio>
#include <cstdlib>

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
