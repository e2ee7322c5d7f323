// Seeded random tensors. Each tensor has its own stream, keyed by its name, so that models and their variants share
// weights where names and shapes agree, and the order of building does not matter.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tensor/tensor.hpp"

namespace opfuse {

class Weights {
 public:
  explicit Weights(uint64_t seed) : seed_(seed) {}

  /// Uniform in [low, high).
  Tensor uniform(std::string_view name, std::vector<int64_t> sizes, double low, double high) const;
  /// A filter [out, in/group, kernel...] or matrix [out, in] with variance gain / fan_in. Where the fan-in is 8 or
  /// more every filter is centred (sums to zero): otherwise what all inputs have in common, a positive mean after
  /// each ReLU, drowns what tells them apart.
  Tensor filter(std::string_view name, std::vector<int64_t> sizes, double gain) const;

 private:
  uint64_t seed_;
};

}  // namespace opfuse
