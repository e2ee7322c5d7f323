// A concrete n-dimensional array: dense, row-major, shared immutable-by-convention storage.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/dim.hpp"
#include "tensor/dtype.hpp"

namespace opfuse {

/// Element type and shape of a value.
struct TensorType {
  DType dtype = DType::unknown;
  Shape shape;
  std::string text() const;  ///< "f32[1,3,224,224]"
  bool operator==(const TensorType&) const = default;
};
TensorType parse_type(std::string_view text);

/// Dense row-major array. Copying shares the storage; `clone` copies it. Storage may be a mapped file
/// (zero-copy weights): then it must not be written.
class Tensor {
 public:
  Tensor() = default;
  /// Zero-initialised. Throws E::bad_dimension for negative or overflowing sizes.
  Tensor(DType dtype, std::vector<int64_t> sizes);
  /// Shares foreign storage kept alive by `owner`. `bytes` must be at least elements * byte_size.
  static Tensor wrap(DType dtype, std::vector<int64_t> sizes, const void* data, std::shared_ptr<const void> owner);
  template <class T>
  static Tensor of(DType dtype, std::vector<int64_t> sizes, const std::vector<T>& values);
  static Tensor scalar(DType dtype, double value);
  static Tensor from_i64(const std::vector<int64_t>& values);  ///< i64[n]

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  size_t rank() const { return sizes_.size(); }
  int64_t dim(size_t i) const { return sizes_[i]; }
  int64_t elements() const;
  size_t bytes() const;
  TensorType type() const;
  bool empty() const { return data_ == nullptr; }

  const void* data() const { return data_.get(); }
  void* mutable_data() { return const_cast<void*>(data_.get()); }
  template <class T>
  std::span<const T> view() const {
    return {static_cast<const T*>(data()), static_cast<size_t>(elements())};
  }
  template <class T>
  std::span<T> mutable_view() {
    return {static_cast<T*>(mutable_data()), static_cast<size_t>(elements())};
  }

  /// Element `i` in row-major order, as double or integer whatever the dtype.
  double real(int64_t i) const;
  int64_t integer(int64_t i) const;
  /// Stores with the dtype's rounding (to nearest even) and, for integers, saturation.
  void set_real(int64_t i, double value);
  void set_integer(int64_t i, int64_t value);

  Tensor clone() const;
  Tensor reshaped(std::vector<int64_t> sizes) const;  ///< shares storage
  Tensor cast(DType dtype) const;
  std::vector<int64_t> to_i64() const;  ///< all elements of an integer tensor
  bool same_bits(const Tensor& other) const;

 private:
  DType dtype_ = DType::unknown;
  std::vector<int64_t> sizes_;
  std::shared_ptr<const void> data_;
};

template <class T>
Tensor Tensor::of(DType dtype, std::vector<int64_t> sizes, const std::vector<T>& values) {
  Tensor t(dtype, std::move(sizes));
  for (size_t i = 0; i < values.size(); ++i) t.set_real(static_cast<int64_t>(i), static_cast<double>(values[i]));
  return t;
}

/// How far `got` is from `want`: the largest |got - want| and the largest |want|; equal infinities and
/// NaN at the same place count as equal, a NaN or infinity on one side only as infinitely far.
struct Difference {
  double max_abs = 0;
  double max_reference = 0;
  double mean_abs = 0;
  int64_t at = -1;
  double relative() const;  ///< max_abs / max_reference (0 when both are 0)
};
Difference difference(const Tensor& got, const Tensor& want);

uint16_t to_half(float value);
float from_half(uint16_t bits);
uint16_t to_bfloat16(float value);
float from_bfloat16(uint16_t bits);

}  // namespace opfuse
