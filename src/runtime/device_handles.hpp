// What a CUDA driver gives, with owners: contexts, memory, modules, streams, events, graphs.
#pragma once

#include <utility>

#include "device/driver.hpp"

namespace opfuse {

/// What the driver made; given back by `destroy` at the end of its owner. The owner chooses the context before.
template <class T, cuda::CuResult (*cuda::Driver::*destroy)(T)>
class DeviceHandle {
 public:
  explicit DeviceHandle(const cuda::Driver& driver) : driver_(&driver) {}
  DeviceHandle(DeviceHandle&& other) noexcept
      : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
  DeviceHandle& operator=(DeviceHandle&&) = delete;
  ~DeviceHandle() { reset(); }
  void reset() {
    if (handle_) (driver_->*destroy)(std::exchange(handle_, nullptr));
  }
  T get() const { return handle_; }
  T* slot() { return &handle_; }  ///< where the driver writes a new one

 private:
  const cuda::Driver* driver_;
  T handle_ = nullptr;
};
using DeviceModule = DeviceHandle<cuda::CuModule, &cuda::Driver::cuModuleUnload>;
using DeviceStream = DeviceHandle<cuda::CuStream, &cuda::Driver::cuStreamDestroy_v2>;
using DeviceEvent = DeviceHandle<cuda::CuEvent, &cuda::Driver::cuEventDestroy_v2>;
using DeviceGraph = DeviceHandle<cuda::CuGraph, &cuda::Driver::cuGraphDestroy>;
using DeviceGraphExec = DeviceHandle<cuda::CuGraphExec, &cuda::Driver::cuGraphExecDestroy>;

/// A hold on a device's primary context.
class DeviceContext {
 public:
  DeviceContext(const cuda::Driver& driver, int device);
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;
  ~DeviceContext() { driver_.cuDevicePrimaryCtxRelease_v2(device_); }
  const cuda::Driver& driver() const { return driver_; }
  cuda::CuContext get() const { return context_; }

 private:
  const cuda::Driver& driver_;
  cuda::CuDevice device_ = 0;
  cuda::CuContext context_ = nullptr;
};

/// The calling thread works in this context; at the end it has again the one that it had.
class InContext {
 public:
  explicit InContext(const DeviceContext& context) : driver_(context.driver()) {
    driver_.cuCtxGetCurrent(&before_);
    if (before_ != context.get()) driver_.cuCtxSetCurrent(context.get());  // of a live context, this cannot fail
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  ~InContext() { driver_.cuCtxSetCurrent(before_); }

 private:
  const cuda::Driver& driver_;
  cuda::CuContext before_ = nullptr;
};

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const cuda::Driver& driver, size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory() { release(); }
  cuda::CuPointer address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  void release();
  const cuda::Driver* driver_ = nullptr;
  cuda::CuPointer address_ = 0;
  size_t bytes_ = 0;
};

}  // namespace opfuse
