// Mapped afresh rather than from malloc, which may hand out memory that was touched in small pages before: advice does
// not change those.
#include "base/aligned_bytes.hpp"

#include <sys/mman.h>

#include <utility>

#include "base/fail.hpp"
#include "base/sanitizers.hpp"

#if defined(OPFUSE_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace opfuse {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

size_t mapped_size(size_t bytes) {
  const size_t page = bytes >= kHugePage ? kHugePage : kPage;
  return (bytes + page - 1) / page * page;
}

uint8_t* map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

/// `bytes` at a multiple of kHugePage: a huge page more is mapped, and what lies before and behind goes back.
uint8_t* map_huge(size_t bytes) {
  uint8_t* memory = map(bytes + kHugePage);
  if (!memory) return nullptr;
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(memory) % kHugePage) % kHugePage;
  if (before) munmap(memory, before);
  if (before < kHugePage) munmap(memory + before + bytes, kHugePage - before);
  madvise(memory + before, bytes, MADV_HUGEPAGE);  // advice only: failure is harmless
  return memory + before;
}

/// AddressSanitizer sees no ends of mappings by itself.
void fence([[maybe_unused]] const uint8_t* end, [[maybe_unused]] size_t rest) {
#if defined(OPFUSE_ASAN)
  ASAN_POISON_MEMORY_REGION(end, rest);
#endif
}

void unfence([[maybe_unused]] const uint8_t* end, [[maybe_unused]] size_t rest) {
#if defined(OPFUSE_ASAN)
  ASAN_UNPOISON_MEMORY_REGION(end, rest);
#endif
}

}  // namespace

AlignedBytes::AlignedBytes(size_t bytes, const char* purpose) : size_(bytes) {
  if (bytes == 0) return;
  data_ = bytes > SIZE_MAX - 2 * kHugePage ? nullptr
          : bytes >= kHugePage             ? map_huge(mapped_size(bytes))
                                           : map(mapped_size(bytes));
  if (!data_)
    throw fail(E::out_of_memory, "{} bytes for {} could not be had", bytes, purpose)
        .hint("bind a smaller batch, or free memory");
  fence(data_ + size_, mapped_size(size_) - size_);
}

AlignedBytes::~AlignedBytes() {
  if (!data_) return;
  unfence(data_ + size_, mapped_size(size_) - size_);
  munmap(data_, mapped_size(size_));
}

AlignedBytes::AlignedBytes(AlignedBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBytes& AlignedBytes::operator=(AlignedBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace opfuse
