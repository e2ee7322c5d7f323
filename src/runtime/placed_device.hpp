// Devices beside the host, as the launches of a program see them: memory that values have there, kernels of pieces.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/artifact.hpp"

namespace opfuse {

/// What a device does, whether a plug-in's or a GPU's. Any threads may call it; it does one thing at a time.
class PlacedDevice {
 public:
  virtual ~PlacedDevice() = default;
  virtual uint64_t allocate(uint64_t bytes) = 0;
  virtual void free(uint64_t memory) = 0;
  virtual void to_device(const void* host, uint64_t memory, uint64_t bytes) = 0;
  virtual void from_device(uint64_t memory, void* host, uint64_t bytes) = 0;
  /// A kernel of a piece whose sizes are known; it lives as long as the device.
  virtual uint64_t compile(const std::string& piece) = 0;
  /// `symbols`: sizes of the run, for kernels of open sizes.
  virtual void run(uint64_t kernel, std::span<const uint64_t> memories, const SymbolValues& symbols) = 0;
};

class Plugin;
std::unique_ptr<PlacedDevice> plugin_device(std::shared_ptr<Plugin> plugin);

/// What was copied and run, for reports; a plug-in's own records say the same.
struct DeviceTraffic {
  int64_t copies_in = 0, copies_out = 0, bytes_in = 0, bytes_out = 0, runs = 0;
};

/// A device and the memory that values have there. A value has a place in the host's arena too, whose address names it:
/// so lifetimes are the arena's, and contexts do not meet.
class DeviceSession {
 public:
  explicit DeviceSession(std::unique_ptr<PlacedDevice> device) : device_(std::move(device)) {}
  ~DeviceSession();
  DeviceSession(const DeviceSession&) = delete;
  DeviceSession& operator=(const DeviceSession&) = delete;

  PlacedDevice& device() { return *device_; }
  /// Memory for the value that is stored at a place of the arena; at least so many bytes.
  uint64_t place(const void* host, uint64_t bytes);
  uint64_t at(const void* host);
  uint64_t constant(std::span<const uint8_t> bytes);  ///< copied there once
  uint64_t kernel(const std::string& piece);
  DeviceTraffic traffic() const;
  void count(const DeviceTraffic& more);

 private:
  struct Block {
    uint64_t memory = 0, bytes = 0;
  };
  std::unique_ptr<PlacedDevice> device_;
  mutable std::mutex mutex_;
  std::map<const void*, Block> blocks_;
  std::map<std::string, uint64_t> constants_;  ///< by what they hold
  std::map<std::string, uint64_t> kernels_;
  DeviceTraffic traffic_;
};

/// The device of an artifact's section: its plug-in, or the GPU. E::no_device, E::device_failed naming it.
std::shared_ptr<DeviceSession> open_device(const ArtifactDevice& device);

/// Launches of devices become host functions; devices that have no session yet are opened. Pieces of known sizes are
/// compiled, and constants copied, at once.
void bind_devices(Artifact& artifact);

/// A piece whose dimensions are open, at the sizes of a run.
std::string piece_at(const std::string& piece, const SymbolValues& symbols);

}  // namespace opfuse
