// Launches of devices as functions that the host calls in the program's order. Values lie densely in the host's memory,
// or, where a launch on the host made them otherwise, are gathered.
#include "base/fail.hpp"
#include "plugin/plugin.hpp"
#include "runtime/gpu_device.hpp"
#include "runtime/placed_device.hpp"
#include "runtime/placed_value.hpp"

namespace opfuse {
namespace {

class PluginDevice final : public PlacedDevice {
 public:
  explicit PluginDevice(std::shared_ptr<Plugin> plugin) : plugin_(std::move(plugin)) {}
  ~PluginDevice() override {
    for (opfuse_kernel* kernel : kernels_) plugin_->destroy(kernel);
  }
  uint64_t allocate(uint64_t bytes) override { return plugin_->allocate(bytes); }
  void free(uint64_t memory) override { plugin_->free(memory); }
  void to_device(const void* host, uint64_t memory, uint64_t bytes) override {
    plugin_->to_device(host, memory, bytes);
  }
  void from_device(uint64_t memory, void* host, uint64_t bytes) override { plugin_->from_device(memory, host, bytes); }
  uint64_t compile(const std::string& piece) override {
    kernels_.push_back(plugin_->compile(piece));
    return reinterpret_cast<uint64_t>(kernels_.back());
  }
  void run(uint64_t kernel, std::span<const uint64_t> memories, const SymbolValues&) override {
    plugin_->run(reinterpret_cast<opfuse_kernel*>(kernel), memories);
  }

 private:
  std::shared_ptr<Plugin> plugin_;
  std::vector<opfuse_kernel*> kernels_;
};

uint64_t bytes_of(const TensorType& type, const SymbolValues& symbols) {
  return static_cast<uint64_t>(type.shape.elements().evaluate(symbols)) * byte_size(type.dtype);
}

using Session = std::shared_ptr<DeviceSession>;

HostFunction copy_in(const PlacedValue& from, const Session& session) {
  return [=](std::span<void* const> pointers, const SymbolValues& symbols) {
    const uint64_t bytes = bytes_of(from.type, symbols);
    const bool plain = is_plain(from, symbols);
    const uint64_t memory = session->place(pointers[1], bytes);
    const Tensor gathered = plain ? Tensor() : access_of(from, symbols).load(pointers[0]);
    session->device().to_device(plain ? pointers[0] : gathered.data(), memory, bytes);
    session->count({.copies_in = 1, .bytes_in = static_cast<int64_t>(bytes)});
  };
}

HostFunction copy_out(const PlacedValue& to, const Session& session) {
  return [=](std::span<void* const> pointers, const SymbolValues& symbols) {
    const uint64_t bytes = bytes_of(to.type, symbols);
    const uint64_t memory = session->at(pointers[0]);
    session->count({.copies_out = 1, .bytes_out = static_cast<int64_t>(bytes)});
    if (is_plain(to, symbols)) return session->device().from_device(memory, pointers[1], bytes);
    Tensor dense(to.type.dtype, to.type.shape.evaluate(symbols));
    session->device().from_device(memory, dense.mutable_data(), bytes);
    access_of(to, symbols).store(dense, pointers[1]);
  };
}

struct Operand {
  TensorType type;
  uint64_t constant = 0;
  bool result = false;
};

HostFunction run_piece(const Artifact& artifact, const ArtifactProgram& program, const ArtifactLaunch& launch,
                       const Session& session) {
  std::vector<Operand> operands;
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const ArtifactBuffer& buffer = program.buffers.at(static_cast<size_t>(launch.buffers[i]));
    Operand operand{launch.placed.values.at(i).type, 0, i >= static_cast<size_t>(launch.placed.inputs)};
    if (buffer.storage == Storage::constant)
      operand.constant = session->constant(artifact.constants.subspan(static_cast<size_t>(buffer.offset.value()),
                                                                      static_cast<size_t>(bytes_of(operand.type, {}))));
    operands.push_back(operand);
  }
  const std::string& piece = launch.placed.piece;
  const bool known = launch.placed.symbols.empty();
  const uint64_t compiled = known ? session->kernel(piece) : 0;
  return [=](std::span<void* const> pointers, const SymbolValues& symbols) {
    const uint64_t kernel = known ? compiled : session->kernel(piece_at(piece, symbols));
    // A proof runs a piece alone: the host's arrays follow, and operands are copied there and back.
    const std::span<void* const> arrays =
        pointers.size() == 2 * operands.size() ? pointers.subspan(operands.size()) : std::span<void* const>();
    std::vector<uint64_t> memories;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Operand& operand = operands[i];
      const uint64_t bytes = operand.constant ? 0 : bytes_of(operand.type, symbols);
      const bool own = !arrays.empty() || operand.result;
      memories.push_back(operand.constant ? operand.constant
                         : own            ? session->place(pointers[i], bytes)
                                          : session->at(pointers[i]));
      if (!arrays.empty() && !operand.constant && !operand.result)
        session->device().to_device(arrays[i], memories[i], bytes);
    }
    session->device().run(kernel, memories, symbols);
    for (size_t i = 0; i < operands.size() && !arrays.empty(); ++i)
      if (operands[i].result)
        session->device().from_device(memories[i], arrays[i], bytes_of(operands[i].type, symbols));
    session->count({.runs = 1});
  };
}

HostFunction function_of(const Artifact& artifact, const ArtifactProgram& program, const ArtifactLaunch& launch,
                         const Session& session) {
  switch (launch.placed.kind) {
    case PlacedLaunch::Kind::copy_in:
      return copy_in(launch.placed.values.at(0), session);
    case PlacedLaunch::Kind::copy_out:
      return copy_out(launch.placed.values.at(1), session);
    default:
      return run_piece(artifact, program, launch, session);
  }
}

void bind(const Artifact& artifact, ArtifactProgram& program) {
  for (ArtifactLaunch& launch : program.launches)
    if (launch.placed.kind != PlacedLaunch::Kind::none && !launch.host)
      launch.host = function_of(artifact, program, launch,
                                artifact.devices.at(static_cast<size_t>(launch.placed.device)).session);
}

}  // namespace

std::unique_ptr<PlacedDevice> plugin_device(std::shared_ptr<Plugin> plugin) {
  return std::make_unique<PluginDevice>(std::move(plugin));
}

std::shared_ptr<DeviceSession> open_device(const ArtifactDevice& device) {
  if (device.program) return std::make_shared<DeviceSession>(gpu_device(device));
  return std::make_shared<DeviceSession>(plugin_device(Plugin::open({device.target, device.library, device.file})));
}

void bind_devices(Artifact& artifact) {
  for (ArtifactDevice& device : artifact.devices)
    if (!device.session) device.session = open_device(device);
  bind(artifact, artifact);
  for (ArtifactVariant& variant : artifact.variants) bind(artifact, variant);
}

/// "input %0 f32[batch,768]": the type is the first thing in brackets of a statement.
std::string piece_at(const std::string& piece, const SymbolValues& symbols) {
  std::string out;
  for (size_t at = 0; at < piece.size();) {
    const size_t end = std::min(piece.find('\n', at), piece.size());
    const std::string line = piece.substr(at, end - at);
    at = end + 1;
    const size_t open = line.find('['), close = line.find(']');
    const bool typed = line.starts_with("input ") || line.starts_with("constant ") || line.starts_with("node ");
    if (!typed || open == std::string::npos || close == std::string::npos) {
      out += line + "\n";
      continue;
    }
    const std::string_view sizes = std::string_view(line).substr(0, close + 1);
    const size_t type = sizes.rfind(' ', open) + 1;
    out += line.substr(0, open + 1);
    const Shape shape = parse_type(sizes.substr(type)).shape;
    for (size_t d = 0; d < shape.rank(); ++d) out += (d ? "," : "") + std::to_string(shape[d].evaluate(symbols));
    out += line.substr(close) + "\n";
  }
  return out;
}

}  // namespace opfuse
