// Executable: immutable state around an artifact. The code is copied once into a mapping of its own
// (write, then read + execute), so neither the file nor its file system needs to allow execution.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fail.hpp"
#include "runtime/placed_device.hpp"
#include "runtime/state.hpp"
#include "target/target.hpp"

namespace opfuse {
namespace {

std::shared_ptr<const uint8_t> map_code(std::span<const uint8_t> code) {
  if (code.empty()) return nullptr;
  const size_t bytes = code.size();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw fail(E::out_of_memory, "{} bytes for machine code could not be mapped", bytes);
  std::memcpy(memory, code.data(), bytes);
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) != 0) {
    const int error = errno;
    munmap(memory, bytes);
    throw fail(E::unsupported_cpu, "this system does not allow generated code to run: {}", std::strerror(error))
        .hint("a security policy forbids executable memory for this process");
  }
  return {static_cast<const uint8_t*>(memory), [bytes](const uint8_t* p) { munmap(const_cast<uint8_t*>(p), bytes); }};
}

std::vector<TensorInfo> infos_of(const std::vector<ArtifactTensor>& tensors) {
  std::vector<TensorInfo> infos;
  for (const ArtifactTensor& t : tensors) {
    TensorInfo info{t.name, t.type.dtype, {}};
    for (const Dim& dim : t.type.shape.dims) info.shape.push_back(dim.text());
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace

/// The system keeps matrix registers for processes that asked for them; looking for features asks. Devices are opened.
static Artifact made_ready(Artifact a) {
  const auto& needed = a.cpu_features;
  if (std::find(needed.begin(), needed.end(), "amx-tile") != needed.end()) host_features();
  bind_devices(a);
  return a;
}

ExecutableState::ExecutableState(Artifact a)
    : artifact(made_ready(std::move(a))),
      inputs(infos_of(artifact.inputs)),
      outputs(infos_of(artifact.outputs)),
      code(artifact.on_device() ? nullptr : map_code(artifact.code)) {}

std::shared_ptr<const DeviceProgram> ExecutableState::device(int number) const {
  const std::lock_guard lock(device_mutex_);
  std::shared_ptr<const DeviceProgram>& program = devices_[number];
  if (!program) program = std::make_shared<const DeviceProgram>(artifact, number);
  return program;
}

static const ExecutableState& still_there(const std::shared_ptr<const ExecutableState>& state) {
  if (!state) throw fail(E::bad_binding, "this executable was moved from").hint("use the one that it was moved to");
  return *state;
}

Executable Executable::load(const std::string& path) { return from_artifact(load_artifact(path)); }
Executable Executable::from_artifact(Artifact artifact) {
  return Executable(std::make_shared<const ExecutableState>(std::move(artifact)));
}
void Executable::save(const std::string& path) const { save_artifact(still_there(state_).artifact, path); }
const std::vector<TensorInfo>& Executable::inputs() const { return still_there(state_).inputs; }
const std::vector<TensorInfo>& Executable::outputs() const { return still_there(state_).outputs; }
const Artifact& Executable::artifact() const { return still_there(state_).artifact; }
std::vector<std::map<std::string, int64_t>> Executable::variants() const {
  std::vector<std::map<std::string, int64_t>> sizes;
  for (const ArtifactVariant& variant : still_there(state_).artifact.variants)
    if (!variant.stretches) sizes.push_back(variant.when);
  return sizes;
}

}  // namespace opfuse
