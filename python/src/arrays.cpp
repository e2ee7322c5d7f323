// Arrays between Python and opfuse. Nothing is converted: what would need a copy is refused, with what to write
// instead.
#include "arrays.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <new>

#include "errors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

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
  for (size_t axis = 0; axis < array.ndim(); ++axis)
    if (array.shape(axis) == 0) return true;
  int64_t expected = 1;
  for (size_t axis = array.ndim(); axis-- > 0;) {
    if (array.shape(axis) != 1 && array.stride(axis) != expected) return false;
    expected *= static_cast<int64_t>(array.shape(axis));
  }
  return true;
}

std::string class_of(nb::handle object) { return nb::cast<std::string>(object.type().attr("__name__")); }

template <class Array>
HeldArray held(const std::string& name, nb::handle object, const Array& array) {
  const bool cuda = array.device_type() == nb::device::cuda::value;
  if (!cuda && array.device_type() != nb::device::cpu::value)
    throw bad_binding("the array for '" + name + "' lies neither in the CPU's nor in a CUDA device's memory",
                      "copy it to the CPU first");
  if (!dense(nb::ndarray<nb::ro>(array)))
    throw bad_binding("the array for '" + name + "' is not dense and row-major",
                      cuda ? "array.contiguous()" : "numpy.ascontiguousarray(array)");
  const DType dtype = dtype_of(array.dtype());
  if (dtype == DType::unknown)
    throw bad_binding("the array for '" + name + "' has elements of a type that opfuse does not know",
                      "array.astype(...) to the type that inputs() shows");
  ArrayView view{dtype, const_cast<void*>(static_cast<const void*>(array.data())), {}};
  for (size_t axis = 0; axis < array.ndim(); ++axis) view.shape.push_back(static_cast<int64_t>(array.shape(axis)));
  if (cuda) view.device = array.device_id();
  return {std::move(view), nb::ndarray<>(array), nb::borrow(object)};
}

}  // namespace

HeldArray array_in_place(const std::string& name, nb::handle object, bool writable) {
  if (device_of(object) != kHostMemory)
    throw bad_binding("the array for '" + name + "' lies on a GPU, and is used on the CPU here",
                      "copy it: array.cpu()");
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

int device_of(nb::handle object) {
  constexpr int kCuda = 2;
  if (!nb::hasattr(object, "__dlpack_device__")) return kHostMemory;
  try {
    const auto place = nb::cast<std::pair<int, int>>(object.attr("__dlpack_device__")());
    return place.first == kCuda ? place.second : kHostMemory;
  } catch (nb::python_error&) {  // a tensor without memory, torch's meta device: taken as an array, it says why not
    return kHostMemory;
  }
}

HeldArray device_array_in_place(const std::string& name, nb::handle object, int64_t stream) {
  nb::object capsule;
  try {
    capsule = object.attr("__dlpack__")("stream"_a = stream);
  } catch (nb::python_error& error) {
    throw bad_binding("the array for '" + name + "' is not given away: " + error.what(),
                      "torch: tensor.detach(); sparse and conjugated tensors need a dense copy");
  }
  nb::ndarray<> array;
  if (nb::try_cast(capsule, array, false)) return held(name, object, array);
  nb::ndarray<nb::ro> readable;
  if (!nb::try_cast(capsule, readable, false))
    throw bad_binding("the array for '" + name + "' has no DLPack that opfuse knows", "torch.Tensor, or cupy.ndarray");
  return held(name, object, readable);
}

// ---- memory of opfuse's own -------------------------------------------------------------------------------------

namespace {

size_t bytes_of(DType dtype, const std::vector<int64_t>& shape) {
  const TypeRow* row = row_of(dtype);
  if (!row) throw bad_binding("arrays on a device have no elements of this type", "inputs() and outputs() show types");
  size_t bytes = row->bits / 8U;
  for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
  return bytes;
}

}  // namespace

DeviceArray::DeviceArray(const Executable& executable, DType dtype, std::vector<int64_t> shape, int device)
    : dtype_(dtype),
      shape_(std::move(shape)),
      buffer_(std::make_shared<DeviceBuffer>(executable, bytes_of(dtype, shape_), device)) {}

void DeviceArray::write(const ArrayView& array) {
  if (array.dtype != dtype_ || array.shape != shape_ || array.device != kHostMemory)
    throw bad_binding("write() takes an array of the host with the same shape and element type",
                      std::string("numpy.asarray(values, dtype=\"") + dtype() + "\").reshape(array.shape)");
  nb::gil_scoped_release release;
  buffer_->write(array.data, bytes_of(dtype_, shape_));
}

nb::object DeviceArray::numpy() const {
  const HeldArray host = new_array("numpy()", dtype_, shape_);
  {
    nb::gil_scoped_release release;
    buffer_->read(host.view.data, bytes_of(dtype_, shape_));
  }
  return host.object;
}

nb::object DeviceArray::dlpack() const {
  const TypeRow* row = row_of(dtype_);
  std::vector<size_t> sizes(shape_.begin(), shape_.end());
  auto* kept = new std::shared_ptr<DeviceBuffer>(buffer_);
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::shared_ptr<DeviceBuffer>*>(p); });
  const nb::dlpack::dtype type{static_cast<uint8_t>(row->code), row->bits, 1};
  const nb::ndarray<> array(buffer_->data(), sizes.size(), sizes.data(), owner, nullptr, type, nb::device::cuda::value,
                            buffer_->device());
  nb::object made = nb::cast(array);
  return nb::hasattr(made, "__dlpack__") ? made.attr("__dlpack__")() : made;
}

const char* DeviceArray::dtype() const { return numpy_name(dtype_); }

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
