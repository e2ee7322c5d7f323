// Memory on a GPU for callers without the libraries of CUDA. The program is kept: memory lives in its context.
#include "opfuse/device_buffer.hpp"

#include "base/fail.hpp"
#include "runtime/artifact.hpp"
#include "runtime/device.hpp"
#include "runtime/state.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {

struct DeviceBuffer::State {
  std::shared_ptr<const DeviceProgram> program;
  DeviceMemory memory;
  size_t bytes = 0;

  State(std::shared_ptr<const DeviceProgram> p, size_t size) : program(std::move(p)), bytes(size) {
    const InContext here(program->context());
    memory = DeviceMemory(program->driver(), size);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const InContext here(program->context());
    memory = DeviceMemory();
  }

  void check(size_t size) const {
    if (size > bytes) throw fail(E::bad_binding, "a copy of {} bytes, and the device's memory has {}", size, bytes);
  }
  template <class Copy>
  void copy(const char* doing, Copy&& start) const {
    const InContext here(program->context());
    const cuda::Driver& d = program->driver();
    DeviceStream stream(d);
    d.check(d.cuStreamCreate(stream.slot(), 0), "making a stream");  // waits for the default stream
    d.check(start(d, stream.get()), doing);
    d.check(d.cuStreamSynchronize(stream.get()), doing);
  }
};

DeviceBuffer::DeviceBuffer(const Executable& executable, size_t bytes, int device) {
  const Artifact& a = executable.artifact();
  if (!a.on_device())
    throw fail(E::bad_binding, "an executable for {} has no device memory", a.target)
        .hint("compile for a GPU: --target cuda:sm_90, or cuda:emulated");
  state_ = std::make_unique<State>(executable.state_->device(device), bytes);
}
DeviceBuffer::DeviceBuffer(DeviceBuffer&&) noexcept = default;
DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&&) noexcept = default;
DeviceBuffer::~DeviceBuffer() = default;

void* DeviceBuffer::data() const { return reinterpret_cast<void*>(static_cast<uintptr_t>(state_->memory.address())); }
size_t DeviceBuffer::bytes() const { return state_->bytes; }
int DeviceBuffer::device() const { return state_->program->device(); }

ArrayView DeviceBuffer::view(DType dtype, std::vector<int64_t> shape) const {
  size_t size = byte_size(dtype);
  for (int64_t n : shape)
    if (n < 0 || __builtin_mul_overflow(size, static_cast<size_t>(n), &size)) size = SIZE_MAX;
  state_->check(size);
  return {dtype, data(), std::move(shape), device()};
}

void DeviceBuffer::write(const void* host, size_t bytes) {
  state_->check(bytes);
  if (bytes == 0) return;
  state_->copy("copying to the device", [&](const cuda::Driver& d, cuda::CuStream stream) {
    return d.cuMemcpyHtoDAsync_v2(state_->memory.address(), host, bytes, stream);
  });
}

void DeviceBuffer::read(void* host, size_t bytes) const {
  state_->check(bytes);
  if (bytes == 0) return;
  state_->copy("copying from the device", [&](const cuda::Driver& d, cuda::CuStream stream) {
    return d.cuMemcpyDtoHAsync_v2(host, state_->memory.address(), bytes, stream);
  });
}

}  // namespace opfuse
