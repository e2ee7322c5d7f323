// A compiled model on a GPU: modules and constants shared by an executable's contexts, and one context's memory,
// stream and captured graph.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cuda/driver.hpp"
#include "opfuse/runtime.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {

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
  void make_current() const;
  /// Gives launch `index` to the stream. `pointers` by its buffers; a launch without elements is none.
  void launch(size_t index, std::span<const cuda::CuPointer> pointers, const SymbolValues& symbols,
              std::span<const int64_t> symbol_list, cuda::CuStream stream) const;

  /// One launch on copies of host memory: pointers inside a block, or inside the artifact's constants.
  struct Block {
    char* data;
    size_t bytes;
  };
  void run_alone(size_t index, std::span<const Block> blocks, std::span<void* const> pointers,
                 const SymbolValues& symbols, std::span<const int64_t> symbol_list) const;

 private:
  const Artifact& artifact_;
  const cuda::Driver& driver_;
  cuda::CuContext context_ = nullptr;
  std::vector<cuda::CuModule> modules_;
  std::vector<cuda::CuFunction> functions_;  ///< by launch
  DeviceMemory constants_;
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
  cuda::CuStream stream_ = nullptr;
  cuda::CuGraphExec graph_ = nullptr;
  std::vector<cuda::CuEvent> events_;
  DeviceMemory arena_;
  std::vector<DeviceMemory> inputs_, outputs_;
  std::vector<size_t> input_bytes_, output_bytes_;
  std::vector<std::vector<cuda::CuPointer>> pointers_;  ///< by launch
  SymbolValues symbols_;
  std::vector<int64_t> symbol_list_;

  void drop_graph();
  void capture();
  void run_each(std::vector<int64_t>* launch_ns, const std::function<bool(size_t, size_t)>& progress);
  cuda::CuPointer address_of(const ArtifactBuffer& buffer) const;
};

}  // namespace opfuse
