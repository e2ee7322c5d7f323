// Memory between sentinels, and random operands: what every test of generated kernels feeds them.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "tensor/tensor.hpp"

namespace opfuse::test {

/// Bytes between sentinels, aligned as the kernels under test expect.
class Guarded {
 public:
  explicit Guarded(size_t size, size_t alignment = 64) : size_(size), bytes_(size + 2 * kGuard + alignment, kSentinel) {
    const auto address = reinterpret_cast<uintptr_t>(bytes_.data()) + kGuard;
    data_ = reinterpret_cast<unsigned char*>((address + alignment - 1) / alignment * alignment);
  }
  unsigned char* data() { return data_; }
  bool intact() const {
    const auto same = [](unsigned char b) { return b == kSentinel; };
    return std::all_of(bytes_.data(), static_cast<const unsigned char*>(data_), same) &&
           std::all_of(static_cast<const unsigned char*>(data_) + size_, bytes_.data() + bytes_.size(), same);
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr unsigned char kSentinel = 0xA5;
  size_t size_;
  std::vector<unsigned char> bytes_;
  unsigned char* data_ = nullptr;
};

/// Reals in [low, high), booleans, integers in [-100, 100) or [0, 200).
inline Tensor random_operand(DType dtype, const std::vector<int64_t>& sizes, double low, double high, uint32_t seed) {
  Tensor t(dtype, sizes);
  std::mt19937 draw(seed);
  std::uniform_real_distribution<double> real(low, high);
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (is_float(dtype))
      t.set_real(i, real(draw));
    else if (dtype == DType::boolean)
      t.set_integer(i, draw() & 1);
    else
      t.set_integer(i, static_cast<int64_t>(draw() % 200) - (is_signed(dtype) ? 100 : 0));
  }
  return t;
}

}  // namespace opfuse::test
