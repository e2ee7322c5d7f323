// Arrays between Python and opfuse. Nothing is converted: what would need a copy is refused, with what to write
// instead.
#include "arrays.hpp"

#include <nanobind/stl/string.h>

#include <new>

#include "errors.hpp"

namespace nb = nanobind;

namespace opfuse::python {
namespace {

using Code = nb::dlpack::dtype_code;

struct TypeRow {
  DType dtype;
  Code code;
  uint8_t bits;
  const char* name;
};

constexpr TypeRow kTypes[] = {
    {DType::f32, Code::Float, 32, "float32"}, {DType::f64, Code::Float, 64, "float64"},
    {DType::f16, Code::Float, 16, "float16"}, {DType::bf16, Code::Bfloat, 16, "bfloat16"},
    {DType::i8, Code::Int, 8, "int8"},        {DType::u8, Code::UInt, 8, "uint8"},
    {DType::i16, Code::Int, 16, "int16"},     {DType::u16, Code::UInt, 16, "uint16"},
    {DType::i32, Code::Int, 32, "int32"},     {DType::u32, Code::UInt, 32, "uint32"},
    {DType::i64, Code::Int, 64, "int64"},     {DType::u64, Code::UInt, 64, "uint64"},
    {DType::boolean, Code::Bool, 8, "bool"},
};

const TypeRow* row_of(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return &row;
  return nullptr;
}

DType dtype_of(nb::dlpack::dtype type) {
  for (const TypeRow& row : kTypes)
    if (static_cast<uint8_t>(row.code) == type.code && row.bits == type.bits && type.lanes == 1) return row.dtype;
  return DType::unknown;
}

/// Dense and row-major; strides of axes with one element do not matter, nor do those of empty arrays.
bool dense(const nb::ndarray<nb::ro>& array) {
  int64_t expected = 1;
  for (size_t axis = array.ndim(); axis-- > 0;) {
    if (array.shape(axis) == 0) return true;
    if (array.shape(axis) != 1 && array.stride(axis) != expected) return false;
    expected *= static_cast<int64_t>(array.shape(axis));
  }
  return true;
}

std::string class_of(nb::handle object) { return nb::cast<std::string>(object.type().attr("__name__")); }

template <class Array>
HeldArray held(const std::string& name, nb::handle object, const Array& array) {
  if (array.device_type() != nb::device::cpu::value)
    throw bad_binding("the array for '" + name + "' is not in the CPU's memory", "copy it to the CPU first");
  if (!dense(nb::ndarray<nb::ro>(array)))
    throw bad_binding("the array for '" + name + "' is not dense and row-major", "numpy.ascontiguousarray(array)");
  const DType dtype = dtype_of(array.dtype());
  if (dtype == DType::unknown)
    throw bad_binding("the array for '" + name + "' has elements of a type that opfuse does not know",
                      "array.astype(...) to the type that inputs() shows");
  ArrayView view{dtype, const_cast<void*>(static_cast<const void*>(array.data())), {}};
  for (size_t axis = 0; axis < array.ndim(); ++axis) view.shape.push_back(static_cast<int64_t>(array.shape(axis)));
  return {std::move(view), nb::ndarray<>(array), nb::borrow(object)};
}

}  // namespace

HeldArray array_in_place(const std::string& name, nb::handle object, bool writable) {
  nb::ndarray<> array;
  if (writable && nb::try_cast(object, array, false)) return held(name, object, array);
  nb::ndarray<nb::ro> readable;
  if (!nb::try_cast(object, readable, false))
    throw bad_binding("'" + name + "' needs an array (DLPack or the buffer protocol), and this is " + class_of(object),
                      "numpy.asarray(value, dtype=...)");
  if (writable) throw bad_binding("the array for output '" + name + "' is read-only", "pass one that may be written");
  return held(name, object, readable);
}

HeldArray new_array(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  const TypeRow* row = row_of(dtype);
  if (!row || dtype == DType::bf16)
    throw make_error(
        "E0303", "unsupported_dtype",
        "output '" + name + "' has elements of a type that numpy does not have (" + numpy_name(dtype) + ")",
        "pass an array of your own for it, with out={...}");
  size_t bytes = row->bits / 8U;
  std::vector<size_t> sizes;
  for (const int64_t size : shape) sizes.push_back(static_cast<size_t>(size)), bytes *= sizes.back();
  constexpr std::align_val_t kLine{64};
  void* data = ::operator new(bytes ? bytes : 1, kLine);
  const nb::capsule owner(data, [](void* memory) noexcept { ::operator delete(memory, kLine); });
  const nb::dlpack::dtype type{static_cast<uint8_t>(row->code), row->bits, 1};
  const nb::ndarray<nb::numpy> array(data, sizes.size(), sizes.data(), owner, nullptr, type, nb::device::cpu::value);
  return {{dtype, data, shape}, nb::ndarray<>(array), nb::cast(array)};
}

std::map<std::string, ArrayView> views_of(const std::map<std::string, nb::object>& arrays,
                                          std::vector<HeldArray>& held) {
  std::map<std::string, ArrayView> views;
  for (const auto& [name, array] : arrays) views[name] = held.emplace_back(array_in_place(name, array, false)).view;
  return views;
}

const char* numpy_name(DType dtype) {
  if (const TypeRow* row = row_of(dtype)) return row->name;
  return dtype == DType::string ? "string" : "unknown";
}

}  // namespace opfuse::python
