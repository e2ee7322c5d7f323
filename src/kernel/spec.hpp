// What a code generator is asked and what it answers, whatever its target: specs of kernels in, code out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "program/layout_wish.hpp"
#include "program/program.hpp"
#include "target/target.hpp"
#include "tensor/tensor_map.hpp"

namespace opfuse {

/// How one region parameter lies in memory.
struct ParamLayout {
  Layout layout;
  std::vector<Dim> strides;  ///< elements, per physical dimension
  bool operator==(const ParamLayout&) const = default;
};

/// Everything a kernel's code depends on; equal specs share one kernel.
struct KernelSpec {
  Region region;
  std::vector<ParamLayout> layouts;  ///< per parameter
  std::vector<std::string> symbols;  ///< order of the symbol argument
  Schedule schedule;
  std::string text() const;  ///< canonical; its hash names the kernel
};
/// What a launch asks of a code generator.
KernelSpec kernel_spec(const Program& program, const Launch& launch);
/// The kernel's symbol: structure and hash, "conv_3f1c...".
std::string kernel_symbol(const KernelSpec& spec);

/// Signature of every kernel:
///   void kernel(void* const* pointers, const int64_t* symbols, char* scratch, int64_t part, int64_t parts)
/// pointers: one per region parameter, at the view's origin. A launch runs parts 0..parts-1 in any
/// order on any workers; `parts` is the spec's own number (a Dim over the symbols), never the workers'.
/// scratch: at least scratch_bytes, 64-byte aligned, private to the worker while the part runs.
/// How a GPU's kernel is launched, and what its compiler reported.
struct DeviceKernel {
  Dim grid = 0;   ///< blocks; 0 elements need none
  int block = 0;  ///< threads of a block; 0: no GPU kernel
  int registers = 0;
  int64_t shared_bytes = 0, spill_bytes = 0;
  Dim launch_shared = 0;           ///< bytes of shared memory that the launch gives besides
  int64_t launch_shared_most = 0;  ///< the most it may be
  std::vector<TensorMap> maps{};   ///< arguments behind the symbols; their buffers are parameters
};

struct KernelCode {
  std::string symbol;  ///< "conv_3f1c..." structure + hash
  Dim parts = 1;
  int64_t scratch_bytes = 0;
  size_t offset = 0;      ///< entry point within LinkedCode::bytes
  size_t begin = 0;       ///< start of the kernel's own bytes: code and read-only data, self-contained, `size` long
  size_t size = 0;        ///< of that whole piece
  DeviceKernel device;    ///< kernels of a GPU
  double compile_ms = 0;  ///< on one core; emulated kernels: their share of one library
  std::string llvm_ir, assembly, cuda;  ///< when asked for
};

/// Position-independent code without undefined symbols.
struct LinkedCode {
  std::vector<uint8_t> bytes;  ///< text and read-only data, page aligned start assumed
  std::vector<KernelCode> kernels;
};

/// A function that kernels call for their inner tile: `text` is LLVM IR, or `object` an ELF object or archive.
struct IntrinsicCode {
  std::string symbol, text, object;
  std::string source;  ///< its file, for messages
};

struct CodegenOptions {
  bool emit_llvm = false;
  bool emit_assembly = false;
  bool emit_cuda = false;
  bool text_only = false;  ///< CUDA: the kernels' text without compiling it
  int threads = 0;         ///< 0: available_threads()
  std::function<void(size_t done, size_t total)> progress;
  std::map<int64_t, IntrinsicCode> intrinsics{};  ///< by composite of the target's file; those that kernels call
  bool brief = false;  ///< CPUs: for code that runs a few times; the passes left out make it a few percent faster
};

}  // namespace opfuse
