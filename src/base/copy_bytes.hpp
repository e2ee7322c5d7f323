// Copies that may be of nothing: memcpy of no bytes between null pointers is undefined.
#pragma once

#include <cstddef>
#include <cstring>

namespace opfuse {

inline void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace opfuse
