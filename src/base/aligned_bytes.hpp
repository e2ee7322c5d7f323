// Zeroed memory of its own pages, huge ones from 2 MiB on: weights, arena and scratch. Vectors of a cache line are read
// from it, so it must not start within one, and it is swept linearly, so TLB misses are the first thing to save.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace opfuse {

class AlignedBytes {
 public:
  AlignedBytes() = default;
  /// E::out_of_memory that says what it was for: "the arena".
  AlignedBytes(size_t bytes, const char* purpose);
  ~AlignedBytes();
  AlignedBytes(AlignedBytes&& other) noexcept;
  AlignedBytes& operator=(AlignedBytes&& other) noexcept;
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;

  uint8_t* data() { return data_; }
  size_t size() const { return size_; }
  std::span<const uint8_t> span() const { return {data_, size_}; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace opfuse
