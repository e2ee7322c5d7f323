// Launches of accelerators: pieces and copies as functions that the host calls in the program's order.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ir/graph.hpp"
#include "plugin/plugin.hpp"
#include "program/program.hpp"
#include "runtime/artifact.hpp"

namespace opfuse {

/// What was copied and run, for reports; a plug-in's own records say the same.
struct DeviceTraffic {
  int64_t copies_in = 0, copies_out = 0, bytes_in = 0, bytes_out = 0, runs = 0;
};

/// A device and the memory that values have there. A value has a place in the host's arena too, whose address names it:
/// so lifetimes are the arena's, and contexts do not meet.
class DeviceSession {
 public:
  explicit DeviceSession(std::shared_ptr<Plugin> plugin) : plugin_(std::move(plugin)) {}
  ~DeviceSession();
  DeviceSession(const DeviceSession&) = delete;
  DeviceSession& operator=(const DeviceSession&) = delete;

  Plugin& plugin() { return *plugin_; }
  /// Memory for the value that is stored at a place of the arena; at least so many bytes.
  opfuse_memory place(const void* host, uint64_t bytes);
  opfuse_memory at(const void* host);
  opfuse_memory constant(const Tensor& tensor);  ///< copied there once
  opfuse_kernel* kernel(const std::string& piece);
  DeviceTraffic traffic() const;
  void count(const DeviceTraffic& more);

 private:
  struct Block {
    opfuse_memory memory = 0;
    uint64_t bytes = 0;
  };
  std::shared_ptr<Plugin> plugin_;
  mutable std::mutex mutex_;
  std::map<const void*, Block> blocks_;
  std::map<const void*, opfuse_memory> constants_;
  std::map<std::string, opfuse_kernel*> kernels_;
  DeviceTraffic traffic_;
};

/// The function of a placed node's launch. Compiles its piece and copies its constants at once.
HostFunction placed_launch(const Program& program, const Launch& launch, const Node& placed,
                           const std::shared_ptr<DeviceSession>& session);

}  // namespace opfuse
