// What an .opf holds: plain data, no graph, no regions, no LLVM.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "routine/routine_call.hpp"
#include "tensor/dim_rule.hpp"
#include "tensor/layout.hpp"
#include "tensor/tensor.hpp"
#include "tensor/tensor_map.hpp"

namespace opfuse {

inline constexpr int kArtifactFormat = 5;  ///< written; 4 is read as well
inline constexpr int kCodegenVersion = 1;

struct ArtifactTensor {  ///< a model input or output
  std::string name;
  TensorType type;  ///< symbolic dimensions allowed
  int buffer = -1;
  int64_t indexes = 0;  ///< integer inputs: rows of the smallest table they index, 0: none; for random valid inputs
};

enum class Storage { input, output, constant, arena };

struct ArtifactBuffer {
  Storage storage = Storage::arena;
  int root = -1;   ///< index into inputs / outputs (storage input/output); arena: level, of -1 and 0 the first
  Dim offset = 0;  ///< bytes: into the constants blob, the arena, or the caller's array
  Dim bytes = 0;
  std::string name;
};

/// A launch that the host runs itself on the caller's thread: pointers by the launch's buffers (null: absent).
using HostFunction = std::function<void(std::span<void* const> pointers, const SymbolValues& symbols)>;

/// A launch of a GPU: its kernel is the image (cubin) of `code_bytes` at code_offset.
struct DeviceLaunch {
  Dim grid = 0;   ///< blocks
  int block = 0;  ///< threads of a block; 0: a launch of the CPU
  size_t code_bytes = 0;
  int registers = 0;
  int64_t shared_bytes = 0, spill_bytes = 0;
  Dim launch_shared = 0;           ///< bytes of shared memory that the launch gives besides
  int64_t launch_shared_most = 0;  ///< the most it may be
  std::vector<TensorMap> maps{};   ///< arguments behind the symbols
};

/// A value as a launch of a device has it: its type, and how it lies in the host's memory.
struct PlacedValue {
  TensorType type;
  Layout layout{};
  std::vector<Dim> strides{};
};

/// A launch of a device beside the host: a piece, or a copy of a value to its memory or back.
struct PlacedLaunch {
  enum class Kind { none, run, copy_in, copy_out };
  Kind kind = Kind::none;
  int device = -1;                     ///< of Artifact::devices
  int inputs = 0;                      ///< run: so many of the launch's buffers are operands, those behind results
  std::string piece{};                 ///< run: docs/plugins.md; of a GPU "gpu-piece 3"
  std::vector<std::string> symbols{};  ///< run: dimensions of the piece that a run gives
  std::vector<PlacedValue> values{};   ///< by the launch's buffers
};

/// A launch of a routine (routine/routine.hpp): it finds the sizes of its results, which gives symbols their values.
struct RoutineLaunch {
  RoutineCall call{};                 ///< no name: there is none
  int inputs = 0;                     ///< so many of the launch's buffers are operands, those behind results
  std::vector<PlacedValue> values{};  ///< by the launch's buffers
};

struct ArtifactLaunch {
  std::string name;    ///< readable instance name
  std::string symbol;  ///< kernel symbol
  std::string pattern;
  std::vector<std::string> sources;  ///< source node names
  size_t code_offset = 0;
  std::vector<int> buffers;
  Dim parts = 1;
  int64_t scratch_bytes = 0;
  Dim flops = 0, bytes_read = 0, bytes_written = 0;  ///< for profile
  std::string schedule;                              ///< for inspect
  std::string products = "f32";                      ///< type of what is multiplied, for profile
  DeviceLaunch device{};
  /// In a body, one per buffer: bytes from one part or step to the next, and whether it is the slice of the step
  /// before; then `first` is the number among the launch's buffers of what takes its place in the first step.
  struct Step {
    Dim bytes = 0;
    int first = -1;
  };
  std::vector<Step> steps{};
  PlacedLaunch placed{};
  RoutineLaunch routine{};
  bool is_routine() const { return !routine.call.name.empty(); }
  HostFunction host{};  ///< instead of a kernel; but of a device's launches, which a loaded file gets anew, never saved
};

/// Launches that run once for each part of a batch, or step of a sequence, in order.
struct ArtifactBody {
  int64_t first = 0, launches = 0;
  Dim times = 0;
  bool steps = false;    ///< a step reads what the one before stored; parts are each by themselves
  std::string symbol{};  ///< parts of an open batch: the batch, for which the launches get 1
  int64_t from = 0;      ///< of an open batch: fewer run all at once, in one launch each
};

/// What a run does: launches in order, over buffers.
struct ArtifactProgram {
  std::vector<std::string> symbols;  ///< open dimensions, in kernel argument order
  std::vector<ArtifactBuffer> buffers;
  std::vector<ArtifactLaunch> launches;
  Dim arena_bytes = 0, intermediate_bytes = 0;
  std::vector<ArtifactBody> bodies{};                        ///< in launch order, apart from each other
  std::vector<std::pair<std::string, std::string>> layouts;  ///< buffer name -> layout text, for inspect
  bool bodies_in_two = false;  ///< read from a file that had loops over images and over steps in two lists
};

/// The same model compiled once more: for given sizes of open dimensions, or for operands that stretch.
struct ArtifactVariant : ArtifactProgram {
  SymbolValues when;                          ///< the guard: runs where the bound inputs have all of these sizes
  size_t code_bytes = 0, constant_bytes = 0;  ///< what it adds to those of the program and the variants before it
  /// Computes broadcasts along open dimensions that are 1; the others take operands to be as large as the result.
  bool stretches = false;
};

/// A constant that a file has as its source, which loading packs into the layout (prepared_constants.hpp).
struct PreparedConstant {
  size_t offset = 0, bytes = 0;  ///< among the constants
  Tensor source{};
  Layout layout{};
};

struct Artifact;
class DeviceSession;

/// What a GPU runs at once: launches of its program, between some of its inputs and outputs.
struct GpuPiece {
  std::vector<int> launches;
  int first_input = 0, inputs = 0, first_output = 0, outputs = 0;
};

/// A device beside the host: a plug-in's, or a GPU with the program whose launches are its pieces.
struct ArtifactDevice {
  std::string target;
  std::string library{}, file{};  ///< of a plug-in: [plugin] library, and the target's file that says so
  std::shared_ptr<const Artifact> program{};
  std::vector<GpuPiece> pieces{};
  std::shared_ptr<DeviceSession> session{};  ///< open, in this process
};

/// Complete compiled model: the program for all sizes, and variants of it that share its code and constants.
/// `code` and `constants` may point into a mapped file kept alive by `owner`.
struct Artifact : ArtifactProgram {
  int format = kArtifactFormat;  ///< of the file it was read from
  int codegen = kCodegenVersion;
  std::string target;
  bool on_device() const { return target.starts_with("cuda:"); }
  std::vector<std::string> cpu_features;
  std::string model_name, model_hash, producer;
  std::vector<ArtifactTensor> inputs, outputs;
  std::vector<std::pair<std::string, Tensor>>
      fixed_inputs{};  ///< of the model; binding them to anything else is refused
  std::vector<ArtifactVariant> variants{};
  std::vector<ArtifactDevice> devices{};     ///< beside the target, whose launches name them
  std::vector<DimConstraint> constraints{};  ///< on the open dimensions; checked by every run
  std::vector<std::string> notes;
  std::string plan_json;
  std::vector<std::string> skipped{};  ///< sections of later releases that the reader passed over
  std::span<const uint8_t> code;
  std::span<const uint8_t> constants;
  std::vector<PreparedConstant> prepared{};  ///< of the constants, in order
  std::shared_ptr<const void> owner;

  /// What runs at these sizes: the first variant that they meet, else the program for all sizes. Where an open
  /// dimension of 1 stretches: a variant whose sizes settle that, else the one that stretches.
  const ArtifactProgram& program_for(const SymbolValues& sizes) const;
};

/// "batch=1 sequence=128"
std::string text_of(const SymbolValues& sizes);
/// How reports name a variant: its sizes, or "stretching".
std::string text_of(const ArtifactVariant& variant);

/// Writes atomically (temporary file, rename). E::file_write_failed.
void save_artifact(const Artifact& artifact, const std::string& path);
/// Maps the file; checks magic, versions, checksums, CPU features, bounds. E::bad_file, E::unsupported_cpu.
Artifact load_artifact(const std::string& path);

}  // namespace opfuse
