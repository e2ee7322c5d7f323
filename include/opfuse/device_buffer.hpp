// Memory of a GPU that an executable runs on, for callers that have no CUDA library of their own.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "opfuse/runtime.hpp"

namespace opfuse {

/// Memory of the device `device` of an executable's target; the emulated device's for cuda:emulated, which host code
/// cannot touch either. Copies wait until they are done. Freed at the end, which waits for what uses it.
class OPFUSE_API DeviceBuffer {
 public:
  /// Throws no_device, out_of_memory; bad_binding for an executable of the CPU.
  DeviceBuffer(const Executable& executable, size_t bytes, int device = 0);
  DeviceBuffer(DeviceBuffer&&) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) noexcept;
  ~DeviceBuffer();

  void* data() const;  ///< its address there
  size_t bytes() const;
  int device() const;
  /// All of it as an array. Throws bad_binding where the array is larger.
  ArrayView view(DType dtype, std::vector<int64_t> shape) const;
  /// `bytes` from and to the host. Throws bad_binding where that is more than there is.
  void write(const void* host, size_t bytes);
  void read(void* host, size_t bytes) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace opfuse
