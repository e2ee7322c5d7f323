#include "base/aligned_bytes.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/fail.hpp"

namespace opfuse {
namespace {
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
}  // namespace

AlignedBytes::AlignedBytes(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  const size_t alignment = bytes >= kHugePage ? kHugePage : kPage;
  data_ = static_cast<uint8_t*>(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
  if (!data_) throw fail(E::out_of_memory, "{} bytes for packed constants could not be had", bytes);
  if (alignment == kHugePage) madvise(data_, bytes, MADV_HUGEPAGE);  // advice only: failure is harmless
  std::memset(data_, 0, bytes);
}

AlignedBytes::~AlignedBytes() { std::free(data_); }

AlignedBytes::AlignedBytes(AlignedBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBytes& AlignedBytes::operator=(AlignedBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace opfuse
