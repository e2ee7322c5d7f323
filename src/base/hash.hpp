// Stable 128-bit hashing (XXH3): the same on every machine, so it may name kernels and cache files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace opfuse {

struct Hash128 {
  uint64_t high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
  auto operator<=>(const Hash128&) const = default;
  std::string hex() const;  ///< 32 lower-case hex digits
};

Hash128 hash_bytes(const void* data, size_t size);
inline Hash128 hash_text(std::string_view text) { return hash_bytes(text.data(), text.size()); }

}  // namespace opfuse
