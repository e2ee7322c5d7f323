#include "device/fake_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/sanitizers.hpp"

#if defined(OPFUSE_ASAN)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes) (static_cast<void>(start), static_cast<void>(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) (static_cast<void>(start), static_cast<void>(bytes))
#endif

namespace opfuse::cuda {
namespace {

constexpr size_t kAlignment = 256;  ///< what cuMemAlloc gives
constexpr int kPoison = 0xFF;       ///< NaN in every float format

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

void FakeMemory::protect(const Allocation& a) const {
  mprotect(a.pages, a.page_bytes, users_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
}

CuPointer FakeMemory::allocate(size_t bytes, int device) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t used = rounded(bytes, kAlignment), pages = rounded(used, page);
  void* block = mmap(nullptr, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return 0;
  Allocation a{0, bytes, device, static_cast<char*>(block), pages};
  mprotect(a.pages + pages, page, PROT_NONE);
  char* const start = a.pages + pages - used;
  std::memset(start, kPoison, used);
  ASAN_POISON_MEMORY_REGION(start + bytes, used - bytes);
  a.start = static_cast<CuPointer>(reinterpret_cast<uintptr_t>(start));
  const std::lock_guard lock(mutex_);
  protect(a);
  allocations_[a.start] = a;
  return a.start;
}

bool FakeMemory::free(CuPointer start) {
  const std::lock_guard lock(mutex_);
  const auto at = allocations_.find(start);
  if (at == allocations_.end()) return false;
  const Allocation& a = at->second;
  ASAN_UNPOISON_MEMORY_REGION(a.pages, a.page_bytes);
  munmap(a.pages, a.page_bytes + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  allocations_.erase(at);
  return true;
}

std::optional<FakeMemory::Allocation> FakeMemory::find(CuPointer at) {
  const std::lock_guard lock(mutex_);
  auto it = allocations_.upper_bound(at);
  if (it == allocations_.begin()) return {};
  --it;
  if (at - it->first >= it->second.bytes) return {};
  return it->second;
}

bool FakeMemory::covers(CuPointer at, size_t bytes) {
  if (bytes == 0) return true;
  const std::optional<Allocation> a = find(at);
  return a && at - a->start + bytes <= a->bytes;
}

size_t FakeMemory::live() {
  const std::lock_guard lock(mutex_);
  return allocations_.size();
}

void FakeMemory::open() {
  const std::lock_guard lock(mutex_);
  if (users_++ > 0) return;
  for (const auto& [start, a] : allocations_) protect(a);
}

void FakeMemory::close() {
  const std::lock_guard lock(mutex_);
  if (--users_ > 0) return;
  for (const auto& [start, a] : allocations_) protect(a);
}

}  // namespace opfuse::cuda
