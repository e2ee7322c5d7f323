// Replaces the global operator new and delete of the test program.
#include "driver/allocation_count.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> g_allocations{0};
}

void* operator new(size_t bytes) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace opfuse::testing_support {
AllocationCount::AllocationCount() : start_(g_allocations.load()) {}
int64_t AllocationCount::so_far() const { return g_allocations.load() - start_; }
}  // namespace opfuse::testing_support
