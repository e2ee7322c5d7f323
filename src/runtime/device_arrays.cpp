#include "runtime/device_arrays.hpp"

#include "base/fail.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {
namespace {

struct Place {
  bool on_device = false, managed = false;
  int device = 0;
  cuda::CuPointer start = 0;
  size_t bytes = 0;
};

/// What the driver knows of a pointer; nothing of pageable host memory.
Place place_of(const cuda::Driver& d, cuda::CuPointer at) {
  Place place;
  unsigned memory = 0, managed = 0;
  if (d.cuPointerGetAttribute(&memory, cuda::kPointerMemory, at) != 0) return place;
  d.cuPointerGetAttribute(&managed, cuda::kPointerManaged, at);
  place.managed = managed != 0;
  place.on_device = memory != cuda::kHostMemoryType && memory != 0;
  d.cuPointerGetAttribute(&place.device, cuda::kPointerDevice, at);
  if (d.cuPointerGetAttribute(&place.start, cuda::kPointerStart, at) != 0 ||
      d.cuPointerGetAttribute(&place.bytes, cuda::kPointerBytes, at) != 0)
    place.start = 0, place.bytes = 0;
  return place;
}

size_t bytes_of(const ArrayView& array) {
  size_t bytes = byte_size(array.dtype);
  for (int64_t size : array.shape)
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes)) return SIZE_MAX;
  return bytes;
}

void check_on_device(const DeviceProgram& program, const std::string& name, const ArrayView& array, const Place& place,
                     cuda::CuPointer at) {
  if (array.device != program.device() || (place.on_device && !place.managed && place.device != program.device()))
    throw fail(E::bad_binding, "the array for '{}' lies on device {}, and this context runs on device {}", name,
               place.on_device ? place.device : array.device, program.device())
        .hint("copy it there, or create the context with ContextOptions::device of the arrays (Python: device=...)");
  if (!place.on_device)
    throw fail(E::bad_binding, "the array for '{}' says that it lies on device {}, but its pointer is the host's", name,
               array.device)
        .hint("bind memory of cuMemAlloc, cudaMalloc or torch; for host memory leave ArrayView::device at kHostMemory");
  if (at % kArrayAlignment != 0)
    throw fail(E::bad_binding, "the array for '{}' starts {} bytes behind a multiple of {}; kernels load vectors", name,
               at % kArrayAlignment, kArrayAlignment)
        .hint("copy it to the start of an allocation (torch: x.clone())");
  const size_t room = place.bytes ? place.bytes - (at - place.start) : SIZE_MAX;
  if (bytes_of(array) > room)
    throw fail(E::bad_binding, "the array for '{}' takes {} bytes, but its allocation ends after {}", name,
               bytes_of(array), room)
        .hint("check its shape and element type against the memory it was made for");
}

}  // namespace

void check_place(const DeviceProgram& program, const std::string& name, const ArrayView& array) {
  if (bytes_of(array) == 0 || !array.data) return;
  const InContext here(program.context());
  const auto at = static_cast<cuda::CuPointer>(reinterpret_cast<uintptr_t>(array.data));
  const Place place = place_of(program.driver(), at);
  if (array.device != kHostMemory) return check_on_device(program, name, array, place, at);
  if (place.on_device && !place.managed)
    throw fail(E::bad_binding, "the array for '{}' is bound as the host's, but its pointer is memory of device {}",
               name, place.device)
        .hint(fmt::format("set ArrayView::device = {}", place.device));
}

void check_host_place(const std::string& name, const ArrayView& array) {
  if (array.device != kHostMemory)
    throw fail(E::bad_binding, "the array for '{}' lies on device {}, and this executable runs on the CPU", name,
               array.device)
        .hint("copy it to the host (torch: x.cpu()), or compile for the GPU: --target cuda:sm_90");
}

}  // namespace opfuse
