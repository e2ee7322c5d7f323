// Zeroed memory that vectors of a cache line are read from: aligned to pages, to huge pages from 2 MiB on. What malloc
// returns lies 16 bytes behind a line, so that every vector of 64 bytes would touch two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace opfuse {

class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(size_t bytes);  ///< E::out_of_memory
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
