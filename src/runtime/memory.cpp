// Arena, scratch and output memory. Own memory starts at a line, from 4 KiB on at a page; from 2 MiB on it is aligned
// to that and advised to use huge pages: activations are swept linearly, so TLB misses are the first thing to save.
#include <sys/mman.h>

#include <cstdlib>
#include <utility>

#include "base/fail.hpp"
#include "runtime/state.hpp"

namespace opfuse {
namespace {
constexpr size_t kCacheLine = 64;
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
}  // namespace

Memory::Memory(size_t bytes, Allocator* allocator) : bytes_(bytes), allocator_(allocator) {
  if (bytes == 0) return;
  const size_t alignment = bytes >= kHugePage ? kHugePage : bytes >= kPage ? kPage : kCacheLine;
  if (allocator) {
    data_ = static_cast<char*>(allocator->allocate(bytes, kCacheLine));
  } else {
    data_ = static_cast<char*>(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
    if (data_ && alignment == kHugePage) madvise(data_, bytes, MADV_HUGEPAGE);  // advice only: failure is harmless
  }
  if (!data_)
    throw fail(E::out_of_memory, "{} bytes for the arena could not be had", bytes)
        .hint("bind a smaller batch, or free memory");
}

Memory& Memory::operator=(Memory&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  allocator_ = other.allocator_;
  return *this;
}

void Memory::release() {
  if (!data_) return;
  if (allocator_) {
    allocator_->deallocate(data_, bytes_);
  } else {
    std::free(data_);
  }
  data_ = nullptr;
}

}  // namespace opfuse
