// Logical tensors into and out of program buffers, element by element through layout and strides.
#pragma once

#include "program/program.hpp"

namespace opfuse {

/// Elements from the buffer's origin to logical coordinates, with symbols bound.
class BufferAccess {
 public:
  BufferAccess(const Buffer& buffer, const SymbolValues& symbols);
  int64_t offset(const std::vector<int64_t>& coords) const;
  const std::vector<int64_t>& sizes() const { return sizes_; }

  void store(const Tensor& logical, void* origin) const;  ///< dtype of the buffer; lanes that pad become zero
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
