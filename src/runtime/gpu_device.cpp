// A kernel is a piece of the device's program: its launches, one after the other, between memories that the caller has.
#include "runtime/gpu_device.hpp"

#include <mutex>

#include "base/fail.hpp"
#include "runtime/device.hpp"

namespace opfuse {
namespace {

/// "gpu-piece 3"
uint64_t kernel_of(const std::string& piece, size_t pieces) {
  const size_t number = std::stoull(piece.substr(piece.rfind(' ') + 1));
  OPFUSE_CHECK(number < pieces, "the program has no piece {}", number);
  return number + 1;
}

class GpuDevice final : public PlacedDevice {
 public:
  explicit GpuDevice(const ArtifactDevice& device)
      : artifact_(device.program), pieces_(device.pieces), program_(*artifact_), stream_(program_.driver()) {
    const InContext here(program_.context());
    check(program_.driver().cuStreamCreate(stream_.slot(), 1), "making a stream");
  }
  ~GpuDevice() override {
    const InContext here(program_.context());
    memories_.clear();
    arena_ = DeviceMemory();
    stream_.reset();
  }

  uint64_t allocate(uint64_t bytes) override {
    const std::lock_guard lock(one_at_a_time_);
    const InContext here(program_.context());
    DeviceMemory memory(program_.driver(), bytes);
    const uint64_t address = memory.address();
    memories_.emplace(address, std::move(memory));
    return address;
  }
  void free(uint64_t memory) override {
    const std::lock_guard lock(one_at_a_time_);
    const InContext here(program_.context());
    memories_.erase(memory);
  }
  void to_device(const void* host, uint64_t memory, uint64_t bytes) override {
    const std::lock_guard lock(one_at_a_time_);
    const InContext here(program_.context());
    check(program_.driver().cuMemcpyHtoDAsync_v2(memory, host, bytes, stream_.get()), "copying to its memory");
    check(program_.driver().cuStreamSynchronize(stream_.get()), "copying to its memory");
  }
  void from_device(uint64_t memory, void* host, uint64_t bytes) override {
    const std::lock_guard lock(one_at_a_time_);
    const InContext here(program_.context());
    check(program_.driver().cuMemcpyDtoHAsync_v2(host, memory, bytes, stream_.get()), "copying from its memory");
    check(program_.driver().cuStreamSynchronize(stream_.get()), "copying from its memory");
  }

  uint64_t compile(const std::string& piece) override { return kernel_of(piece, pieces_.size()); }

  void run(uint64_t kernel, std::span<const uint64_t> memories, const SymbolValues& symbols) override {
    const std::lock_guard lock(one_at_a_time_);
    const InContext here(program_.context());
    const GpuPiece& piece = pieces_.at(kernel - 1);
    const auto arena = static_cast<size_t>(artifact_->arena_bytes.evaluate(symbols));
    if (!arena_.address() || arena_.bytes() < arena) arena_ = DeviceMemory(program_.driver(), arena);
    std::vector<int64_t> symbol_list;
    for (const std::string& name : artifact_->symbols) symbol_list.push_back(symbols.at(name));
    std::vector<cuda::CuPointer> pointers;
    for (const int index : piece.launches) {
      pointers.clear();
      for (const int b : artifact_->launches[static_cast<size_t>(index)].buffers)
        pointers.push_back(address_of(artifact_->buffers[static_cast<size_t>(b)], piece, memories, symbols));
      const auto l = static_cast<size_t>(index);
      program_.launch(l, pointers, program_.maps(l, pointers, symbols), symbols, symbol_list, stream_.get());
    }
    check(program_.driver().cuStreamSynchronize(stream_.get()), "running a piece");
  }

 private:
  std::shared_ptr<const Artifact> artifact_;
  const std::vector<GpuPiece> pieces_;
  DeviceProgram program_;
  DeviceStream stream_;
  DeviceMemory arena_;
  std::map<uint64_t, DeviceMemory> memories_;
  std::mutex one_at_a_time_;  ///< contexts share the stream, and the arena of the piece that runs

  void check(cuda::CuResult result, const char* doing) const { program_.driver().check(result, doing); }

  cuda::CuPointer address_of(const ArtifactBuffer& buffer, const GpuPiece& piece, std::span<const uint64_t> memories,
                             const SymbolValues& symbols) const {
    const auto offset = static_cast<cuda::CuPointer>(buffer.offset.evaluate(symbols));
    switch (buffer.storage) {
      case Storage::input:
        return memories[static_cast<size_t>(buffer.root - piece.first_input)] + offset;
      case Storage::output:
        return memories[static_cast<size_t>(piece.inputs + buffer.root - piece.first_output)] + offset;
      case Storage::constant:
        return program_.constants() + offset;
      case Storage::arena:
        return arena_.address() + offset;
    }
    return 0;
  }
};

/// Opens the GPU when a run needs it: compiling and loading need none.
class LateGpu final : public PlacedDevice {
 public:
  explicit LateGpu(const ArtifactDevice& device) : device_(device) {}
  uint64_t allocate(uint64_t bytes) override { return gpu().allocate(bytes); }
  void free(uint64_t memory) override { gpu().free(memory); }
  void to_device(const void* host, uint64_t memory, uint64_t bytes) override { gpu().to_device(host, memory, bytes); }
  void from_device(uint64_t memory, void* host, uint64_t bytes) override { gpu().from_device(memory, host, bytes); }
  uint64_t compile(const std::string& piece) override { return kernel_of(piece, device_.pieces.size()); }
  void run(uint64_t kernel, std::span<const uint64_t> memories, const SymbolValues& symbols) override {
    gpu().run(kernel, memories, symbols);
  }

 private:
  const ArtifactDevice device_;
  std::unique_ptr<GpuDevice> gpu_;
  std::mutex opening_;

  GpuDevice& gpu() {
    const std::lock_guard lock(opening_);
    if (!gpu_) gpu_ = std::make_unique<GpuDevice>(device_);
    return *gpu_;
  }
};

}  // namespace

std::unique_ptr<PlacedDevice> gpu_device(const ArtifactDevice& device) { return std::make_unique<LateGpu>(device); }

}  // namespace opfuse
