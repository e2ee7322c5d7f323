// Memory of a kernel under test: it ends where pages begin that nobody may touch, so that reading behind it is seen
// too; sentinels, which are not numbers, fill the rest of its own pages.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <new>

namespace opfuse::test {

/// `size` bytes at a multiple of a cache line; vectors may read to the end of the last line.
class Fenced {
 public:
  explicit Fenced(size_t size) : size_(size), pages_(up(std::max<size_t>(size, 1), kPage)) {
    const size_t all = pages_ + 2 * kPage;
    void* memory = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = {static_cast<unsigned char*>(memory), [all](unsigned char* from) { munmap(from, all); }};
    if (mprotect(begin(), pages_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    std::fill(begin(), end(), kSentinel);
  }
  unsigned char* data() const { return end() - up(size_, kLine); }
  bool intact() const {
    const auto same = [](unsigned char b) { return b == kSentinel; };
    return std::all_of(begin(), data(), same) && std::all_of(data() + size_, end(), same);
  }

 private:
  static constexpr size_t kPage = 4096, kLine = 64;
  static constexpr unsigned char kSentinel = 0xFF;
  static size_t up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
  unsigned char* begin() const { return memory_.get() + kPage; }
  unsigned char* end() const { return begin() + pages_; }

  size_t size_, pages_;
  std::shared_ptr<unsigned char> memory_;
};

}  // namespace opfuse::test
