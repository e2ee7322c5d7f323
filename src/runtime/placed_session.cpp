// Memory and kernels of a device beside the host, found by the host's addresses and by the text of pieces.
#include "base/fail.hpp"
#include "base/hash.hpp"
#include "runtime/placed_device.hpp"

namespace opfuse {

DeviceSession::~DeviceSession() {
  // What a failing call left behind is null.
  for (const auto& [host, block] : blocks_)
    if (block.memory) device_->free(block.memory);
  for (const auto& [bytes, memory] : constants_)
    if (memory) device_->free(memory);
}

uint64_t DeviceSession::place(const void* host, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Block& block = blocks_[host];
  if (block.memory && block.bytes >= bytes) return block.memory;
  if (block.memory) device_->free(std::exchange(block.memory, 0));
  block = {device_->allocate(bytes), bytes};
  return block.memory;
}

uint64_t DeviceSession::at(const void* host) {
  const std::lock_guard lock(mutex_);
  const auto at = blocks_.find(host);
  OPFUSE_CHECK(at != blocks_.end() && at->second.memory, "a value of a device was never stored there");
  return at->second.memory;
}

uint64_t DeviceSession::constant(std::span<const uint8_t> bytes) {
  const std::lock_guard lock(mutex_);
  uint64_t& memory = constants_[hash_bytes(bytes.data(), bytes.size()).hex() + std::to_string(bytes.size())];
  if (memory) return memory;
  memory = device_->allocate(bytes.size());
  device_->to_device(bytes.data(), memory, bytes.size());
  return memory;
}

uint64_t DeviceSession::kernel(const std::string& piece) {
  const std::lock_guard lock(mutex_);
  uint64_t& kernel = kernels_[piece];
  if (!kernel) kernel = device_->compile(piece);
  return kernel;
}

DeviceTraffic DeviceSession::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

void DeviceSession::count(const DeviceTraffic& more) {
  const std::lock_guard lock(mutex_);
  traffic_.copies_in += more.copies_in, traffic_.copies_out += more.copies_out;
  traffic_.bytes_in += more.bytes_in, traffic_.bytes_out += more.bytes_out;
  traffic_.runs += more.runs;
}

}  // namespace opfuse
