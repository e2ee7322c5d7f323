// Proof of equality: the compiled model against the fp64 interpreter, group by group and as a whole.
#pragma once

#include <string>
#include <vector>

#include "driver/pipeline.hpp"
#include "interp/interpreter.hpp"
#include "opfuse/opfuse.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {

/// One launch alone.
struct GroupComparison {
  std::string name, pattern, output;
  std::vector<std::string> sources;
  Difference difference;
  bool padding_zero = true;  ///< padding lanes of blocked outputs
  int64_t ties = 0;          ///< elements one rounding step off, their value before rounding on a tie (compare_chain)
  bool ok = false;
};

struct OutputComparison {
  std::string name;
  Difference difference;
  double change =
      0;  ///< max |y(x1) - y(x0)| / max |y(x0)|: what another input changes; an error must be small beside it
  bool ok = false;
  double from_interpreter = 0;  ///< compare_chain: relative difference that roundings to steps may explain
};

/// Tolerances are of fp32 results; half-precision results round coarser: at least 2e-3 (f16), 1e-2 (bf16).
double tolerance_of(DType dtype, double stated);

struct CompareOptions {
  double group_tolerance = 2e-5;   ///< of the group output's max abs
  double output_tolerance = 1e-4;  ///< of the output's max abs
  int threads = 0;
  StepProgress progress;
};

struct Comparison {
  std::vector<GroupComparison> groups;
  std::vector<OutputComparison> outputs;
  bool chained = false;  ///< by compare_chain
  bool ok() const;
  const GroupComparison* worst() const;  ///< largest relative error, null without groups
};

/// Runs every launch of the program alone on the interpreter's tensors of `graph` (the graph the program was lowered
/// from) and compares what it stores. Values are matched by name.
std::vector<GroupComparison> compare_groups(const Graph& graph, const Program& program, const Executable& executable,
                                            const std::vector<Tensor>& inputs, const CompareOptions& options);

/// The whole model through a Context against the interpreter, for `inputs`; `other_inputs` measure
/// OutputComparison::change.
std::vector<OutputComparison> compare_outputs(const Graph& graph, const Executable& executable,
                                              const std::vector<Tensor>& inputs,
                                              const std::vector<Tensor>& other_inputs, const CompareOptions& options);

/// Results of an executable as tensors, in output order.
std::vector<Tensor> run_executable(const Executable& executable, const std::vector<Tensor>& inputs,
                                   ContextOptions options = {});

}  // namespace opfuse
