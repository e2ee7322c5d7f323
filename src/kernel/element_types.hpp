// The element types of a contraction, and what follows from them for tiles, layouts and costs.
#pragma once

#include "target/target.hpp"
#include "tensor/dtype.hpp"

namespace opfuse {

struct ElementTypes {
  DType data = DType::f32, weights = DType::f32;  ///< as they lie in memory
  DType sum = DType::f32;                         ///< what products are added up in
  DType result = DType::f32;                      ///< of the first output
  bool operator==(const ElementTypes&) const = default;

  /// Maps of f16: a step's channels of a tile become f32 before they are multiplied.
  bool widens_data() const { return data == DType::f16; }
  /// Weights of 16 bits beside data of f32, or data that become so: each is widened when it is loaded.
  bool widens_weights() const { return (data == DType::f32 || widens_data()) && weights != DType::f32; }
  /// Channels of which one lane of a sum takes the products at once: they lie side by side in a word of its size.
  int64_t unit() const { return widens_weights() ? 1 : sum_bytes() / weight_bytes(); }
  /// Sums in a vector; blocks of channels have as many, whatever their type.
  int64_t lanes(const TargetInfo& target) const { return target.vector_bytes / sum_bytes(); }

  int64_t data_bytes() const { return static_cast<int64_t>(byte_size(data)); }
  int64_t weight_bytes() const { return static_cast<int64_t>(byte_size(weights)); }
  int64_t sum_bytes() const { return static_cast<int64_t>(byte_size(sum)); }
  int64_t result_bytes() const { return static_cast<int64_t>(byte_size(result)); }
};

}  // namespace opfuse
