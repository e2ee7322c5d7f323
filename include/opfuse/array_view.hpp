// Arrays of a caller, as opfuse sees them.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "opfuse/dtype.hpp"

namespace opfuse {

/// ArrayView::device of arrays in the host's memory.
inline constexpr int kHostMemory = -1;

/// A caller's dense row-major array. opfuse reads and writes it in place and never frees it.
struct ArrayView {
  DType dtype = DType::unknown;
  void* data = nullptr;
  std::vector<int64_t> shape{};
  int device = kHostMemory;  ///< else the number of the GPU whose memory `data` is, as CUDA counts them
};

namespace detail {
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return DType::u16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}
}  // namespace detail

template <class T>
ArrayView view(T* data, std::vector<int64_t> shape) {
  return {detail::dtype_of<std::remove_const_t<T>>(), const_cast<std::remove_const_t<T>*>(data), std::move(shape)};
}
template <class T>
ArrayView view(std::vector<T>& data, std::vector<int64_t> shape) {
  return view(data.data(), std::move(shape));
}
template <class T>
ArrayView view(const std::vector<T>& data, std::vector<int64_t> shape) {
  return view(data.data(), std::move(shape));
}

/// An array in the memory of a GPU: `data` is a CUdeviceptr, or what cudaMalloc gave.
template <class T>
ArrayView device_view(T* data, std::vector<int64_t> shape, int device = 0) {
  ArrayView array = view(data, std::move(shape));
  array.device = device;
  return array;
}

}  // namespace opfuse
