// Logical tensors into and out of memory, element by element through layout and strides.
#pragma once

#include <vector>

#include "tensor/layout.hpp"

namespace opfuse {

/// Elements from the origin of a value to logical coordinates.
class StridedAccess {
 public:
  /// Strides by physical dimension of the layout.
  StridedAccess(Layout layout, DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides)
      : layout_(std::move(layout)), dtype_(dtype), sizes_(std::move(sizes)), strides_(std::move(strides)) {}
  int64_t offset(const std::vector<int64_t>& coords) const;
  const std::vector<int64_t>& sizes() const { return sizes_; }

  void store(const Tensor& logical, void* origin) const;  ///< dtype of the value; lanes that pad become zero
  Tensor load(const void* origin) const;
  /// Whether the lanes that only pad blocked axes are zero.
  bool padding_is_zero(const void* origin) const;

 private:
  std::vector<int64_t> padded() const;  ///< sizes with the lanes that pad
  bool inside(const std::vector<int64_t>& coords) const;
  template <class Visit>
  void each(const std::vector<int64_t>& extents, Visit visit) const;
  Layout layout_;
  DType dtype_;
  std::vector<int64_t> sizes_, strides_;
};

}  // namespace opfuse
