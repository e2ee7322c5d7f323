// The graph interpreter: runs any graph, fused or not, with the operators' references. In exact precision it is the
// oracle that everything opfuse compiles is compared with.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

struct InterpretOptions {
  /// exact: reals are f64 throughout. typed: every value is rounded to its declared dtype.
  Precision precision = Precision::exact;
  /// Symbols that the inputs' dimensions do not give.
  SymbolValues symbols = {};
  /// Called for every result right after it was computed, in the order of execution. In exact precision reals
  /// are f64. The tensor may be kept (storage is shared).
  std::function<void(const Value*, const Tensor&)> observe = {};
  /// Whether `observe` also sees the values inside the bodies of fused and composite nodes.
  bool observe_bodies = false;
  /// Exact results as computed (f64) instead of in their declared dtype.
  bool keep_exact = false;
};

/// Results of the graph for `inputs` (one per graph input, in order). A value is dropped after its last use.
/// Errors: E::bad_binding for inputs that do not fit, E::unsupported_op naming an opaque node, and what the
/// operators' references throw, with the node's name.
std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                              const InterpretOptions& options = {});

/// Results of one node, body included; operands as OpInfo::reference wants them (null: absent).
std::vector<Tensor> interpret_node(const Node& node, std::span<const Tensor* const> operands,
                                   const InterpretOptions& options = {});

/// Symbol values that make the inputs fit the graph's input types, on top of `known`. E::bad_binding names the
/// input, the expected type and what was given; E::missing_dimension a symbol that nothing fixes.
SymbolValues bind_symbols(const Graph& graph, const std::vector<Tensor>& inputs, const SymbolValues& known = {});

}  // namespace opfuse
