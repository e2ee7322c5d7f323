// Running compiled models: Executable (immutable, shared by any number of threads) and Context (one
// caller's state). Nothing here needs the compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "opfuse/array_view.hpp"
#include "opfuse/dtype.hpp"
#include "opfuse/error.hpp"
#include "opfuse/export.hpp"

namespace opfuse {

/// Calls of one phase: fn(context, part, worker) for every part, worker in [0, workers()).
using PartFunction = void (*)(void* context, int64_t part, int worker);

/// Where kernels run. opfuse brings a fork-join pool; a host may supply its own. `run` returns when all
/// parts are done (a barrier); parts of one call are independent and may run in any order.
class OPFUSE_API Executor {
 public:
  virtual ~Executor() = default;
  virtual int workers() const = 0;
  virtual void run(int64_t parts, PartFunction fn, void* context) = 0;
};

/// Memory for the arena, scratch and internally held outputs. Must be callable from any thread.
class OPFUSE_API Allocator {
 public:
  virtual ~Allocator() = default;
  /// Returns memory of the given alignment, or nullptr (reported as out_of_memory).
  virtual void* allocate(size_t bytes, size_t alignment) = 0;
  virtual void deallocate(void* memory, size_t bytes) = 0;
};

struct ContextOptions {
  int threads = 0;                 ///< 0: affinity mask and cgroup quota; ignored with an executor
  Executor* executor = nullptr;    ///< host's; must outlive the context
  Allocator* allocator = nullptr;  ///< host's; must outlive the context
  bool profile = false;            ///< record the time of every launch
  int device = 0;                  ///< executables of a GPU: which one, as CUDA counts them
  bool device_results = false;     ///< of those: outputs that nobody binds stay in the GPU's memory
  /// Called between launches with (done, total); return false to cancel (E0604 cancelled).
  std::function<bool(size_t, size_t)> progress{};
};

/// An input or output of a compiled model.
struct TensorInfo {
  std::string name;
  DType dtype = DType::unknown;
  std::vector<std::string> shape;  ///< numbers, or expressions over symbols ("batch")
};

/// One kernel launch of the model, for reports.
struct LaunchInfo {
  std::string name;    ///< "FusedConvBNReLU__conv1"
  std::string kernel;  ///< kernel symbol
  std::string pattern;
  std::string schedule;
  std::vector<std::string> sources;  ///< source node names
  double flops = 0, bytes_read = 0, bytes_written = 0;
  int64_t parts = 1;
  std::string products = "f32";  ///< the type of what it multiplies: "f32", "bf16", "f16", "int8"
};

struct Artifact;
struct ExecutableState;
struct ContextState;
class Context;
class DeviceBuffer;

/// A compiled model. Copies share one immutable state.
class OPFUSE_API Executable {
 public:
  /// Maps an .opf. An .opf contains machine code: load only what you would run. Throws bad_file,
  /// unsupported_cpu.
  static Executable load(const std::string& path);
  static Executable from_artifact(Artifact artifact);
  void save(const std::string& path) const;

  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& outputs() const;
  /// Sizes of open dimensions that variants were compiled for, in the order in which they are tried.
  std::vector<std::map<std::string, int64_t>> variants() const;
  const Artifact& artifact() const;
  Context create_context(ContextOptions options = {}) const;

 private:
  std::shared_ptr<const ExecutableState> state_;
  explicit Executable(std::shared_ptr<const ExecutableState> state) : state_(std::move(state)) {}
  friend class Context;
  friend class DeviceBuffer;
};

/// One caller's state: arena, bindings, threads. Use from one thread at a time; any number of contexts
/// of one executable may run at once. Of one that was moved from every call throws bad_binding.
class OPFUSE_API Context {
 public:
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  /// Binds an input or output by name, without a copy: the array must stay alive while run() uses it.
  /// Symbolic dimensions take their values from the bound inputs. Throws bad_binding; so does run() where the array of
  /// an output shares memory with that of an input or of another output.
  void bind(const std::string& name, const ArrayView& array);
  /// Runs all launches. Unbound outputs are held by the context (see output()). Allocates nothing once
  /// a shape has run before.
  void run();
  /// Executables of a GPU: gives the run to a stream of the caller's, a CUstream or cudaStream_t of the context's
  /// device (nullptr: the default stream), and returns without waiting for it. What the stream did before is what the
  /// run reads; results are there for what the stream does next. Bound arrays of the host stay untouched until the
  /// stream was waited for. A stream that is being captured records the launches. Throws bad_binding.
  void run_on(void* stream);
  /// Until the last run_on has ended. Throws device_failed where it failed.
  void wait();
  /// The array of an output after run(): the bound one, or the context's own.
  ArrayView output(const std::string& name) const;
  /// The shape an output has for the bound inputs, before or after run(). Throws bad_binding; missing_dimension before
  /// the run where data decide it (behind NonZero, NonMaxSuppression ...).
  std::vector<int64_t> output_shape(const std::string& name) const;
  /// The same; nothing before the run that finds it.
  std::optional<std::vector<int64_t>> known_output_shape(const std::string& name) const;

  /// The sizes of the variant that runs for the bound inputs; empty: the kernels for all sizes run. Throws bad_binding.
  std::map<std::string, int64_t> variant() const;

  int threads() const;
  int device() const;                 ///< the GPU's number; kHostMemory: none
  size_t arena_bytes() const;         ///< of the current shapes
  size_t intermediate_bytes() const;  ///< sum of all intermediates if none shared memory
  /// Launches with the bound shapes' costs. Throws bad_binding before the inputs are bound.
  std::vector<LaunchInfo> launches() const;
  /// Nanoseconds of each launch in the last run, of all its calls (profile option), and of the whole run.
  const std::vector<int64_t>& launch_nanoseconds() const;
  int64_t total_nanoseconds() const;

 private:
  std::unique_ptr<ContextState> state_;
  explicit Context(std::unique_ptr<ContextState> state);
  friend class Executable;
};

/// opfuse's own pool: `threads` workers, the caller of run() is one of them. Waits spin for a bounded
/// time (`spin_microseconds`), then sleep.
OPFUSE_API std::unique_ptr<Executor> make_thread_pool(int threads, int spin_microseconds = 200);
/// Threads this process may use: affinity mask and cgroup CPU quota.
OPFUSE_API int default_threads();

}  // namespace opfuse
