// A compiled model on a GPU: modules and constants shared by an executable's contexts, and one context's memory,
// stream and captured graph.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "device/driver.hpp"
#include "opfuse/runtime.hpp"
#include "runtime/artifact.hpp"

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

/// A hold on the first device's primary context.
class DeviceContext {
 public:
  explicit DeviceContext(const cuda::Driver& driver);
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;
  ~DeviceContext() { driver_.cuDevicePrimaryCtxRelease_v2(device_); }
  void enter() const { driver_.cuCtxSetCurrent(context_); }  ///< for destructors, which cannot fail
  void make_current() const { driver_.check(driver_.cuCtxSetCurrent(context_), "choosing the context"); }

 private:
  const cuda::Driver& driver_;
  cuda::CuDevice device_ = 0;
  cuda::CuContext context_ = nullptr;
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

/// Loaded once per executable. Throws E::no_device.
class DeviceProgram {
 public:
  explicit DeviceProgram(const Artifact& artifact);
  ~DeviceProgram();
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;
  const cuda::Driver& driver() const { return driver_; }
  const Artifact& artifact() const { return artifact_; }
  cuda::CuPointer constants() const { return constants_.address(); }
  void make_current() const { context_.make_current(); }
  void enter() const { context_.enter(); }
  /// The tensor maps that launch `index` takes, where its buffers lie at `pointers`.
  std::vector<cuda::CuTensorMap> maps(size_t index, std::span<const cuda::CuPointer> pointers,
                                      const SymbolValues& symbols) const;
  /// Gives launch `index` to the stream. `pointers` by its buffers; a launch without elements is none.
  void launch(size_t index, std::span<const cuda::CuPointer> pointers, std::span<const cuda::CuTensorMap> maps,
              const SymbolValues& symbols, std::span<const int64_t> symbol_list, cuda::CuStream stream) const;

  /// One launch on copies of host memory: pointers into a block (or where an empty one starts), or into the artifact's
  /// constants.
  struct Block {
    char* data;
    size_t bytes;
  };
  void run_alone(size_t index, std::span<const Block> blocks, std::span<void* const> pointers,
                 const SymbolValues& symbols, std::span<const int64_t> symbol_list) const;

 private:
  const Artifact& artifact_;
  const cuda::Driver& driver_;
  DeviceContext context_;  ///< first: released after everything that lives in it
  std::vector<DeviceModule> modules_;
  std::vector<cuda::CuFunction> functions_;  ///< by launch
  DeviceMemory constants_;

  cuda::CuPointer address_of(const char* p, std::span<const Block> blocks, std::span<const DeviceMemory> copies) const;
};

/// What one context keeps on the device.
class DeviceRun {
 public:
  explicit DeviceRun(std::shared_ptr<const DeviceProgram> program);
  ~DeviceRun();
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;
  /// Memory and addresses for these sizes; what was captured is dropped.
  void prepare(const SymbolValues& symbols, const std::vector<int64_t>& symbol_list, size_t arena_bytes);
  /// Copies the inputs there, runs the captured graph, copies the outputs back. With `launch_ns` every launch is timed
  /// by events instead, with `progress` each is waited for.
  void run(const std::vector<ArrayView>& inputs, const std::vector<ArrayView>& outputs, std::vector<int64_t>* launch_ns,
           const std::function<bool(size_t, size_t)>& progress);

 private:
  std::shared_ptr<const DeviceProgram> program_;
  DeviceMemory arena_;
  std::vector<DeviceMemory> inputs_, outputs_;
  std::vector<size_t> input_bytes_, output_bytes_;
  std::vector<std::vector<cuda::CuPointer>> pointers_;  ///< by launch
  std::vector<std::vector<cuda::CuTensorMap>> maps_;    ///< by launch
  SymbolValues symbols_;
  std::vector<int64_t> symbol_list_;
  DeviceStream stream_;
  std::vector<DeviceEvent> events_;
  DeviceGraphExec graph_;

  void capture();
  void run_each(std::vector<int64_t>* launch_ns, const std::function<bool(size_t, size_t)>& progress);
  cuda::CuPointer address_of(const ArtifactBuffer& buffer) const;
};

}  // namespace opfuse
