// Arrays between Python and opfuse, without copies: anything with DLPack or the buffer protocol goes in, numpy comes
// out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <map>
#include <memory>
#include <opfuse/device_buffer.hpp>
#include <opfuse/runtime.hpp>
#include <string>
#include <vector>

namespace opfuse::python {

/// An array of Python's that opfuse reads or writes in place, and what keeps it alive.
struct HeldArray {
  ArrayView view;
  nanobind::ndarray<> array;  ///< keeps the memory
  nanobind::object object;    ///< what the caller gave
};

/// The array that `object` holds, for the input or output `name`. Throws bad_binding where it cannot be used in place:
/// no array, not in the CPU's memory, not dense and row-major, or (`writable`) read-only.
HeldArray array_in_place(const std::string& name, nanobind::handle object, bool writable);

/// Number of the GPU whose memory the object says it is (DLPack's kDLCUDA); kHostMemory: of none, or no such object.
int device_of(nanobind::handle object);

/// An array of a GPU. Its producer makes `stream` wait for what it has under way (DLPack: 1 is the default stream, -1
/// nothing waits).
HeldArray device_array_in_place(const std::string& name, nanobind::handle object, int64_t stream);

/// Memory of a GPU that opfuse has allocated, as an array with DLPack.
class DeviceArray {
 public:
  DeviceArray(const Executable& executable, DType dtype, std::vector<int64_t> shape, int device);
  void write(const ArrayView& array);
  nanobind::object numpy() const;
  nanobind::object dlpack() const;
  const std::vector<int64_t>& shape() const { return shape_; }
  const char* dtype() const;
  int device() const { return buffer_->device(); }

 private:
  DType dtype_;
  std::vector<int64_t> shape_;
  std::shared_ptr<DeviceBuffer> buffer_;
};

/// A new numpy array, not initialised, aligned to cache lines. Throws unsupported_dtype for what numpy does not have.
HeldArray new_array(const std::string& name, DType dtype, const std::vector<int64_t>& shape);

/// Arrays by name, of inputs that are fixed: opfuse copies them.
std::map<std::string, ArrayView> views_of(const std::map<std::string, nanobind::object>& arrays,
                                          std::vector<HeldArray>& held);

/// numpy's name of an element type ("float32"); "bfloat16" and "string" are not numpy's own.
const char* numpy_name(DType dtype);

}  // namespace opfuse::python
