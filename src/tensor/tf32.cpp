#include "tensor/tf32.hpp"

#include <bit>
#include <cstdint>

namespace opfuse {

float to_tf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t moved = (bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : bits + 0x1000;
  return std::bit_cast<float>(moved & 0xffffe000);
}

}  // namespace opfuse
