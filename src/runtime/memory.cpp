// Arena, scratch and output memory: pages of its own, or what the caller's allocator gives.
#include <utility>

#include "base/fail.hpp"
#include "runtime/state.hpp"

namespace opfuse {
namespace {
constexpr size_t kCacheLine = 64;
}  // namespace

Memory::Memory(size_t bytes, Allocator* allocator) : bytes_(bytes), allocator_(allocator) {
  if (bytes == 0) return;
  if (!allocator) own_ = AlignedBytes(bytes, "the arena");
  data_ = allocator ? static_cast<char*>(allocator->allocate(bytes, kCacheLine)) : reinterpret_cast<char*>(own_.data());
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
  own_ = std::move(other.own_);
  return *this;
}

void Memory::release() {
  if (data_ && allocator_) allocator_->deallocate(data_, bytes_);
  own_ = AlignedBytes();
  data_ = nullptr;
}

}  // namespace opfuse
