// What the process's malloc is, and how it is told to give memory back. jemalloc is the command's
// (cmake/allocator.cmake) or a host's own, so it is asked for by a weak name.
#include "base/free_memory.hpp"

#include <cstddef>
#include <cstdlib>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

extern "C" int mallctl(const char* name, void* old, size_t* old_size, void* set, size_t set_size) __attribute__((weak));

namespace opfuse {

std::string malloc_name() {
  const char* version = nullptr;
  size_t size = sizeof version;
  if (mallctl == nullptr || mallctl("version", &version, &size, nullptr, 0) != 0) return "the C library's";
  const std::string text = version;
  return "jemalloc " + text.substr(0, text.find('-'));
}

void return_free_memory() {
  if (mallctl != nullptr) {
    mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
    mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // 4096 stands for all arenas
    return;
  }
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace opfuse
