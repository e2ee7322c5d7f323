// A compiled model on a GPU, shared by an executable's contexts: modules, constants, launches.
#pragma once

#include <span>
#include <vector>

#include "opfuse/runtime.hpp"
#include "runtime/artifact.hpp"
#include "runtime/device_handles.hpp"

namespace opfuse {

/// Loaded once per executable. Throws E::no_device.
class DeviceProgram {
 public:
  explicit DeviceProgram(const Artifact& artifact, int device = 0);
  ~DeviceProgram();
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;
  const cuda::Driver& driver() const { return driver_; }
  const Artifact& artifact() const { return artifact_; }
  cuda::CuPointer constants() const { return constants_.address(); }
  const DeviceContext& context() const { return context_; }
  int device() const { return device_; }  ///< its number
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
  int device_;
  DeviceContext context_;  ///< first: released after everything that lives in it
  std::vector<DeviceModule> modules_;
  std::vector<cuda::CuFunction> functions_;  ///< by launch
  DeviceMemory constants_;

  void load_kernels();
  void load_constants();
  cuda::CuPointer address_of(const char* p, std::span<const Block> blocks, std::span<const DeviceMemory> copies) const;
};

}  // namespace opfuse
