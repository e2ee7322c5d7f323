// Launches of a program alone: operands stored through the program's own layouts, results read back the same way.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "opfuse/runtime.hpp"
#include "program/program.hpp"
#include "runtime/state.hpp"

namespace opfuse {

/// What a launch stored in one of its results.
struct StoredResult {
  int buffer = -1;
  std::string name;
  Tensor tensor;
  bool padding_zero = true;  ///< lanes that only pad a blocked axis
};

struct LaunchRun {
  std::vector<std::vector<Tensor>> operands;  ///< by launch, by parameter: what the kernel had; empty for results
  std::vector<StoredResult> results;
};

/// The launches of a loop. Slices of all steps lie one behind the other, in the order of the sequence.
struct LoopRun {
  std::vector<std::vector<Tensor>> operands;       ///< by launch, by parameter; empty for results
  std::vector<std::vector<StoredResult>> results;  ///< by launch, in the order of its parameters
};

class LaunchRunner {
 public:
  /// `variant`: the executable's variant that `program` is; -1: its program for all sizes.
  LaunchRunner(const Program& program, const Executable& executable, const SymbolValues& symbols, int variant = -1);

  /// All launches that write what `index` writes (the phases of a transposed convolution each store a part of one
  /// result), in their order: they are run and judged together, at the last of them.
  std::vector<size_t> writers_with(size_t index) const;

  /// What operand `param` of a launch shall be, dense and logical; null for a constant: as it was packed.
  using Operand = std::function<const Tensor*(const Launch& launch, size_t param)>;
  /// Memory around the operands is guarded (E::internal when a kernel wrote there); what no operand filled holds NaN.
  LaunchRun run(const std::vector<size_t>& together, const Operand& operand);

  /// A launch of a plug-in on dense operands, which are copied to its device and back.
  std::vector<Tensor> run_on_device(size_t index, const std::vector<Tensor>& operands, const Node& piece) const;

  /// The launches of a loop, step after step. `operand` has the values of all steps. Null: a constant as it was packed,
  /// or a result of the loop, which a step then reads as the steps before it stored it.
  LoopRun run_steps(const Body& loop, const Operand& operand);
  /// The buffer of all steps that a parameter is a slice of; the parameter's own where it is none.
  int sliced(const Launch& launch, size_t param) const;

  const Program& program() const { return program_; }
  const SymbolValues& symbols() const { return symbols_; }

 private:
  struct Root {
    int buffer = -1;
    int64_t offset = 0;  ///< bytes from the root's start
  };
  class IsolatedBuffer;
  using Roots = std::map<int, IsolatedBuffer>;
  Root root_of(int buffer) const;
  void* place(const Launch& launch, size_t param, const Tensor* tensor, Roots& roots) const;
  std::vector<Tensor> operands_of(const Launch& launch, const std::vector<void*>& pointers,
                                  const Operand& operand) const;
  char* place_slices(const Launch& launch, size_t param, const Tensor* tensor, Roots& roots) const;
  const char* start_of(const Launch& launch, size_t param, const char* first) const;
  Tensor operand_of_steps(const Launch& launch, size_t param, const std::vector<char*>& first, const Operand& operand,
                          bool backwards) const;
  void call(size_t index, const std::vector<void*>& pointers, Roots& roots);

  const Program& program_;
  ExecutableState state_;
  const ArtifactProgram& compiled_;
  SymbolValues symbols_;
  std::vector<int64_t> symbol_list_;
};

}  // namespace opfuse
