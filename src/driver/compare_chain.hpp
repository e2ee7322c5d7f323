// Proof of equality for models that quantise: the groups one after another, each on what the groups before it stored.
#pragma once

#include "driver/compare.hpp"

namespace opfuse {

/// True when a value of the graph is rounded to a step (quantize_linear), in bodies too.
bool quantises(const Graph& graph);

/// Rounding turns an error of 1e-7 into a whole step where a value lies on a tie, and every later value differs then;
/// no tolerance of the final result says anything. So every launch runs on what the launches before it stored, and the
/// interpreter computes from these very numbers what it must store. An element may be one step off where the exact
/// value before rounding is nearer to a tie than the error that floating point may have there: `group_tolerance` of
/// that tensor's largest value, or one division's rounding where the launch reads the tensor itself. Such elements are
/// counted (GroupComparison::ties). The model's outputs must then be those of the last launches bit for bit
/// (OutputComparison::difference is 0); how far they are from the interpreter's is `from_interpreter`.
Comparison compare_chain(const Graph& graph, const Program& program, const Executable& executable,
                         const std::vector<Tensor>& inputs, const std::vector<Tensor>& other_inputs,
                         const CompareOptions& options);

}  // namespace opfuse
