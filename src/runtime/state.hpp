// What stands behind Executable and Context.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned_bytes.hpp"
#include "opfuse/runtime.hpp"
#include "runtime/artifact.hpp"
#include "runtime/device_run.hpp"

namespace opfuse {

using KernelFunction = void (*)(void* const* pointers, const int64_t* symbols, char* scratch, int64_t part,
                                int64_t parts);

/// Immutable. Machine code in its own executable mapping; constants stay where the artifact has them.
struct ExecutableState {
  Artifact artifact;
  std::vector<TensorInfo> inputs, outputs;
  std::shared_ptr<const uint8_t> code;  ///< read + execute; null for a GPU's

  explicit ExecutableState(Artifact a);
  KernelFunction entry(const ArtifactLaunch& launch) const {
    return reinterpret_cast<KernelFunction>(reinterpret_cast<uintptr_t>(code.get()) + launch.code_offset);
  }
  /// Loaded there on the first call; throws E::no_device.
  std::shared_ptr<const DeviceProgram> device(int number) const;

 private:
  mutable std::mutex device_mutex_;
  mutable std::map<int, std::shared_ptr<const DeviceProgram>> devices_;
};

/// Memory from the host's allocator, or anonymous huge-page-advised memory.
class Memory {
 public:
  Memory() = default;
  Memory(size_t bytes, Allocator* allocator);
  Memory(Memory&& other) noexcept { *this = std::move(other); }
  Memory& operator=(Memory&& other) noexcept;
  ~Memory() { release(); }
  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void release();
  char* data_ = nullptr;
  size_t bytes_ = 0;
  Allocator* allocator_ = nullptr;
  AlignedBytes own_;  ///< without allocator
};

/// One launch with everything resolved for the bound arrays.
struct ReadyLaunch {
  size_t launch = 0;  ///< number in the program
  KernelFunction entry = nullptr;
  void* const* pointers = nullptr;
  const int64_t* symbols = nullptr;
  int64_t parts = 1;
  const ArtifactLaunch* host = nullptr;  ///< set for launches of the host
  int64_t times = 0;                     ///< first launch of a body: how often that runs
  size_t looped = 0;                     ///< first launch of a body: how many launches it has; 0: no body
};

/// How a pointer of a body's launch follows parts or steps: at + (step - before) * bytes, but `first` in the first one.
struct PointerStep {
  char* at = nullptr;
  int64_t bytes = 0;
  bool before = false;
  char* first = nullptr;
};

/// With their types, for messages.
std::string names_of(const std::vector<ArtifactTensor>& tensors);

struct ContextState {
  std::shared_ptr<const ExecutableState> executable;
  ContextOptions options;
  std::unique_ptr<Executor> own_executor;
  Executor* executor = nullptr;

  std::vector<ArrayView> bound_inputs, bound_outputs;  ///< data null: unbound
  std::vector<ArrayView> callers_outputs;              ///< as bound; where a run finds the size, there may be more room
  std::vector<Memory> own_outputs;
  std::vector<bool> outputs_bound;  ///< by the caller; the others are the context's
  bool dirty = true;                ///< bindings changed since prepare()
  SymbolValues symbol_values;
  std::optional<SymbolValues> checked_sizes;       ///< for which buffers were found within their memory
  const ArtifactProgram* program = nullptr;        ///< the executable's, for the bound sizes
  std::vector<int64_t> symbols;                    ///< in kernel argument order
  std::vector<std::vector<int64_t>> part_symbols;  ///< the same in each body
  Memory arena;
  std::vector<Memory> later_arenas;  ///< by level from 1 (program/levels.hpp)
  std::vector<int64_t> later_bytes;  ///< what is needed of them
  std::vector<Memory> scratch;       ///< per worker
  std::vector<char*> scratch_pointers;
  std::vector<void*> pointers;             ///< of all launches, one after the other
  std::vector<PointerStep> pointer_steps;  ///< of launches in bodies, by pointer; empty: there is none
  std::vector<ReadyLaunch> ready;
  std::unique_ptr<DeviceRun> device;  ///< set for executables of a GPU
  size_t arena_bytes = 0, intermediate_bytes = 0;
  std::vector<int64_t> launch_ns;
  int64_t total_ns = 0;

  void prepare();
  void run_ready(const ReadyLaunch& launch) const;
  /// The one that begins at ready[first]; `begin` before each launch, `ran` with its place in `ready` behind it.
  void run_body(size_t first, const std::function<void()>& begin, const std::function<void(size_t)>& ran);
  void run_device(DeviceRun::How how);
  /// A launch of a routine: what it finds resolves the launches behind it (runtime/routine_launch.cpp).
  void run_routine_at(size_t number);
  size_t launches_to_run() const;  ///< with those that bodies repeat, as far as sizes are known
  void resolve_symbols();          ///< values of the dimension symbols, from the bound inputs; what runs at these sizes

 private:
  void resolve_outputs();
  void reserve_memory();
  void check_memory();
  void resolve_launches(size_t from);  ///< to the next one of a routine
  void resolve_bodies(size_t from, size_t end);
  void forget_sizes(size_t from);
  void number_symbols();
  void check_found_sizes(const RoutineLaunch& launch) const;
  void reserve_later(size_t number);
  void resolve_launch(size_t launch, const SymbolValues& values, const std::vector<int64_t>& arguments);
  int64_t times_of(const ArtifactBody& body) const;
  void* address_of(const ArtifactBuffer& buffer) const;
};

}  // namespace opfuse
