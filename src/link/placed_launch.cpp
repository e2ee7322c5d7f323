// Operands and results lie densely in the host's memory, or, where a launch on the host made them otherwise, are
// gathered.
#include "link/placed_launch.hpp"

#include <numeric>

#include "base/fail.hpp"
#include "ir/placed.hpp"
#include "link/buffer_access.hpp"
#include "plugin/piece_text.hpp"

namespace opfuse {
namespace {

uint64_t bytes_of(const TensorType& type) {
  return static_cast<uint64_t>(type.shape.elements().value()) * byte_size(type.dtype);
}

/// Row-major without holes.
bool is_plain(const Buffer& buffer) {
  if (!buffer.layout.is_dense() || buffer.strides.size() != buffer.type.shape.rank()) return buffer.strides.empty();
  int64_t step = 1;
  for (size_t i = buffer.strides.size(); i-- > 0;) {
    const Dim extent = buffer.type.shape[i];
    if (!extent.is_constant()) return false;
    if (extent.value() != 1 && buffer.strides[i] != Dim(step)) return false;
    step *= extent.value();
  }
  return true;
}

HostFunction copy_in(const Buffer& from, const std::shared_ptr<DeviceSession>& session) {
  const uint64_t bytes = bytes_of(from.type);
  const bool plain = is_plain(from);
  return [=](std::span<void* const> pointers, const SymbolValues& symbols) {
    const opfuse_memory memory = session->place(pointers[1], bytes);
    const Tensor gathered = plain ? Tensor() : BufferAccess(from, symbols).load(pointers[0]);
    session->plugin().to_device(plain ? pointers[0] : gathered.data(), memory, bytes);
    session->count({.copies_in = 1, .bytes_in = static_cast<int64_t>(bytes)});
  };
}

HostFunction copy_out(const Buffer& to, const std::shared_ptr<DeviceSession>& session) {
  const uint64_t bytes = bytes_of(to.type);
  const bool plain = is_plain(to);
  return [=](std::span<void* const> pointers, const SymbolValues& symbols) {
    const opfuse_memory memory = session->at(pointers[0]);
    session->count({.copies_out = 1, .bytes_out = static_cast<int64_t>(bytes)});
    if (plain) return session->plugin().from_device(memory, pointers[1], bytes);
    Tensor dense(to.type.dtype, BufferAccess(to, symbols).sizes());
    session->plugin().from_device(memory, dense.mutable_data(), bytes);
    BufferAccess(to, symbols).store(dense, pointers[1]);
  };
}

HostFunction run_piece(const Program& program, const Launch& launch, const Node& placed,
                       const std::shared_ptr<DeviceSession>& session) {
  struct Operand {
    opfuse_memory constant = 0;
    uint64_t bytes = 0;
    bool result = false;
  };
  std::vector<Operand> operands;
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers.at(static_cast<size_t>(launch.buffers[i]));
    Operand operand{.bytes = bytes_of(buffer.type), .result = i >= placed.inputs.size()};
    if (buffer.kind == BufferKind::constant) operand.constant = session->constant(buffer.constant);
    operands.push_back(operand);
  }
  opfuse_kernel* const kernel = session->kernel(piece_text(placed));
  return [=](std::span<void* const> pointers, const SymbolValues&) {
    // A proof runs a piece alone: the host's arrays follow, and operands are copied there and back.
    const std::span<void* const> arrays =
        pointers.size() == 2 * operands.size() ? pointers.subspan(operands.size()) : std::span<void* const>();
    for (size_t i = 0; i < operands.size() && !arrays.empty(); ++i)
      if (!operands[i].constant && !operands[i].result)
        session->plugin().to_device(arrays[i], session->place(pointers[i], operands[i].bytes), operands[i].bytes);
    std::vector<opfuse_memory> memories;
    for (size_t i = 0; i < operands.size(); ++i)
      memories.push_back(operands[i].constant ? operands[i].constant
                         : operands[i].result ? session->place(pointers[i], operands[i].bytes)
                                              : session->at(pointers[i]));
    session->plugin().run(kernel, memories);
    for (size_t i = 0; i < operands.size() && !arrays.empty(); ++i)
      if (operands[i].result) session->plugin().from_device(memories[i], arrays[i], operands[i].bytes);
    session->count({.runs = 1});
  };
}

}  // namespace

DeviceSession::~DeviceSession() {
  // What a failing call left behind is null.
  for (const auto& [piece, kernel] : kernels_)
    if (kernel) plugin_->destroy(kernel);
  for (const auto& [host, block] : blocks_)
    if (block.memory) plugin_->free(block.memory);
  for (const auto& [host, memory] : constants_)
    if (memory) plugin_->free(memory);
}

opfuse_memory DeviceSession::place(const void* host, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Block& block = blocks_[host];
  if (block.memory && block.bytes >= bytes) return block.memory;
  if (block.memory) plugin_->free(std::exchange(block.memory, 0));
  block = {plugin_->allocate(bytes), bytes};
  return block.memory;
}

opfuse_memory DeviceSession::at(const void* host) {
  const std::lock_guard lock(mutex_);
  const auto at = blocks_.find(host);
  OPFUSE_CHECK(at != blocks_.end() && at->second.memory, "a value of a device was never stored there");
  return at->second.memory;
}

opfuse_memory DeviceSession::constant(const Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  opfuse_memory& memory = constants_[tensor.data()];
  if (memory) return memory;
  memory = plugin_->allocate(tensor.bytes());
  plugin_->to_device(tensor.data(), memory, tensor.bytes());
  return memory;
}

opfuse_kernel* DeviceSession::kernel(const std::string& piece) {
  const std::lock_guard lock(mutex_);
  opfuse_kernel*& kernel = kernels_[piece];
  if (!kernel) kernel = plugin_->compile(piece);
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

HostFunction placed_launch(const Program& program, const Launch& launch, const Node& placed,
                           const std::shared_ptr<DeviceSession>& session) {
  const auto buffer = [&](size_t i) -> const Buffer& {
    return program.buffers.at(static_cast<size_t>(launch.buffers.at(i)));
  };
  switch (placed_kind(placed)) {
    case PlacedKind::copy_in:
      return copy_in(buffer(0), session);
    case PlacedKind::copy_out:
      return copy_out(buffer(1), session);
    case PlacedKind::run:
      break;
  }
  return run_piece(program, launch, placed, session);
}

}  // namespace opfuse
