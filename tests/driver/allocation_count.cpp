// Replaces the global operator new and delete of the test program; Clang's ThreadSanitizer has its own, and a hook.
#include "driver/allocation_count.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/sanitizers.hpp"

#if defined(OPFUSE_TSAN) && defined(__clang__)
#define COUNT_BY_HOOK
#include <sanitizer/allocator_interface.h>
#endif

namespace {
std::atomic<int64_t> g_allocations{0};

#ifdef COUNT_BY_HOOK
void count(const volatile void*, size_t) { g_allocations.fetch_add(1, std::memory_order_relaxed); }
void ignore(const volatile void*) {}
const int g_installed = __sanitizer_install_malloc_and_free_hooks(count, ignore);
#endif
}  // namespace

#ifndef COUNT_BY_HOOK
void* operator new(size_t bytes) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace opfuse::testing_support {
AllocationCount::AllocationCount() : start_(g_allocations.load()) {}
int64_t AllocationCount::so_far() const { return g_allocations.load() - start_; }
}  // namespace opfuse::testing_support
