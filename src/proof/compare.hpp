// Proof of equality: the compiled model against the fp64 interpreter, group by group and as a whole (docs/accuracy.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/pipeline.hpp"
#include "interp/interpreter.hpp"
#include "opfuse/opfuse.hpp"
#include "proof/judge.hpp"
#include "tensor/tensor.hpp"

namespace opfuse {

/// One launch alone.
struct GroupComparison {
  std::string name, pattern, output;
  std::vector<std::string> sources;
  Difference difference;           ///< on the numbers of a run, from the interpreter's; of the worst result
  Proof real, exact;               ///< on the numbers of a run, and on drawn ones
  std::optional<int64_t> off_law;  ///< requantised groups: elements with other bits than the law's
  bool padding_zero = true;        ///< padding lanes of blocked outputs
  int64_t ties = 0;                ///< elements off by a step, their value before rounding near a tie
  bool mostly_unclaimed = false;   ///< more elements than CompareOptions::most_unclaimed have no bound: not proven
  std::string problem;             ///< why it could not be judged: it wrote outside its buffers, read outside a tensor
  bool ok = false;
};

struct OutputComparison {
  std::string name;
  Difference difference;  ///< from the interpreter
  double change =
      0;  ///< max |y(x1) - y(x0)| / max |y(x0)|: what another input changes; an error must be small beside it
  bool ok = false;
  double precision = 0;        ///< what weights that were rounded on request change of it, of its max
  double conditioning = 0;     ///< what noise of the groups' own size makes of it, of its max
  bool same_as_groups = true;  ///< the run's bits are those of the groups one after another
  std::string tie_at;          ///< the group that decided a tie by what groups before it rounded; then it isn't judged
  bool judged = true;          ///< by its conditioning; not behind roundings to steps, whose ties may differ
};

/// Tolerances are of fp32 results; half-precision results round coarser: at least 2e-3 (f16), 1e-2 (bf16).
double tolerance_of(DType dtype, double stated);

struct CompareOptions {
  std::optional<double> group_tolerance;   ///< of the group output's max abs, instead of the bounds of real data
  std::optional<double> output_tolerance;  ///< of the output's max abs, instead of its conditioning
  double most_unclaimed = kMostUnclaimed;  ///< share of a group's elements that may lack a bound
  int threads = 0;
  StepProgress progress;
  int variant = -1;  ///< the executable's variant whose launches are proven; -1: its program for all sizes
  bool exact_proof = true;
  uint64_t seed = 0;  ///< of the exact proof's operands
};

struct Comparison {
  std::vector<GroupComparison> groups;
  std::vector<OutputComparison> outputs;
  SymbolValues sizes;  ///< of open dimensions
  bool ok() const;
  const GroupComparison* worst() const;  ///< nearest to its bound, or furthest beyond it; null without groups
};

/// Runs every launch of the program alone, each on what the launches before it stored, and proves what it stores
/// (proof/prove_groups.hpp). `graph`: what the program was lowered from; values are matched by name.
std::vector<GroupComparison> compare_groups(const Graph& graph, const Program& program, const Executable& executable,
                                            const std::vector<Tensor>& inputs, const CompareOptions& options);

/// The whole model through a Context against the interpreter, for `inputs`, within output_tolerance (1e-4 by default);
/// `other_inputs` measure OutputComparison::change (empty: not measured).
std::vector<OutputComparison> compare_outputs(const Graph& graph, const Executable& executable,
                                              const std::vector<Tensor>& inputs,
                                              const std::vector<Tensor>& other_inputs, const CompareOptions& options);

/// Groups, then the whole: its bits are those of the last groups, its distance from the interpreter of `model` is what
/// the model's own conditioning explains. `fused`: what the program was lowered from.
Comparison compare_model(const Graph& model, const Graph& fused, const Program& program, const Executable& executable,
                         const std::vector<Tensor>& inputs, const std::vector<Tensor>& other_inputs,
                         const CompareOptions& options);

/// Results of an executable as tensors, in output order.
std::vector<Tensor> run_executable(const Executable& executable, const std::vector<Tensor>& inputs,
                                   ContextOptions options = {});

}  // namespace opfuse
