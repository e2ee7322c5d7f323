// Walks the nodes in topological order, calling each operator's reference.
//
// Constants are converted (f32 -> f64 in exact precision) when they are first read and dropped after their last
// use like every other value, so that peak memory is that of the widest point of the graph. Fused and composite
// nodes run their body, for_parts runs it for each part; it is interpreted with the symbols of the outer graph. Results
// are checked against the inferred types: inference and reference of every operator prove each other on every run.
#include "interp/interpreter.hpp"

#include <unordered_map>

#include "base/fail.hpp"
#include "ir/dim_constraints.hpp"
#include "ir/for_parts.hpp"
#include "ir/located.hpp"

namespace opfuse {
namespace {

Tensor in_precision(const Tensor& tensor, Precision precision) {
  const bool widens = precision == Precision::exact && is_float(tensor.dtype()) && tensor.dtype() != DType::f64;
  return widens ? tensor.cast(DType::f64) : tensor;
}

/// A value of typed precision has its declared dtype.
Tensor as_declared(const Tensor& tensor, DType declared) {
  return is_float(declared) && is_float(tensor.dtype()) ? tensor.cast(declared) : tensor;
}

class Run {
 public:
  Run(const Graph& graph, const InterpretOptions& options, bool outermost)
      : graph_(graph), options_(options), observes_(options.observe && (outermost || options.observe_bodies)) {
    for (const Node* node : graph.nodes())
      for (const Value* value : node->inputs)
        if (value) ++reads_left_[value];
    for (const Value* value : graph.outputs()) ++reads_left_[value];
  }

  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) keep(graph_.inputs()[i], in_precision(inputs[i], options_.precision));
    for (const Node* node : graph_.nodes()) step(*node);
    std::vector<Tensor> results;
    for (const Value* value : graph_.outputs()) results.push_back(read(value));
    return results;
  }

 private:
  const Graph& graph_;
  const InterpretOptions& options_;
  bool observes_;
  std::unordered_map<const Value*, int> reads_left_;
  std::unordered_map<const Value*, Tensor> alive_;

  void keep(const Value* value, Tensor tensor) {
    if (reads_left_.contains(value)) alive_[value] = std::move(tensor);
  }

  const Tensor& read(const Value* value) {
    auto found = alive_.find(value);
    if (found != alive_.end()) return found->second;
    OPFUSE_CHECK(value->constant, "value %{} is read before it is computed", value->id);
    return alive_[value] = in_precision(*value->constant, options_.precision);
  }

  void release(const Value* value) {
    if (value && --reads_left_[value] == 0) alive_.erase(value);
  }

  void step(const Node& node) {
    std::vector<const Tensor*> operands;
    for (const Value* value : node.inputs) {
      if (value) read(value);
      operands.push_back(nullptr);
    }
    // Only now: reading may have moved what alive_ holds.
    for (size_t i = 0; i < operands.size(); ++i)
      if (node.inputs[i]) operands[i] = &alive_.at(node.inputs[i]);
    std::vector<Tensor> results = interpret_node(node, operands, options_);
    for (const Value* value : node.inputs) release(value);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (observes_) options_.observe(node.outputs[i], results[i]);
      keep(node.outputs[i], std::move(results[i]));
    }
  }
};

void check_result(const Node& node, size_t i, const Tensor& tensor, const InterpretOptions& options) {
  const TensorType& type = node.outputs[i]->type;
  const bool real = is_float(type.dtype) && options.precision == Precision::exact;
  OPFUSE_CHECK(type.dtype == DType::unknown || tensor.dtype() == (real ? DType::f64 : type.dtype),
               "result {} of {} has dtype {}, inferred {}", i, node.name(), name_of(tensor.dtype()), type.text());
  if (!type.shape.ranked) return;
  const Shape shape{[&] {
    std::vector<Dim> dims;
    for (const Dim& d : type.shape.dims) dims.push_back(d.substitute(options.symbols));
    return dims;
  }()};
  bool fits = shape.rank() == tensor.rank();
  for (size_t d = 0; fits && d < shape.rank(); ++d) fits = !shape[d].is_constant() || shape[d].value() == tensor.dim(d);
  OPFUSE_CHECK(fits, "result {} of {} has shape {}, inferred {}", i, node.name(), Shape::of(tensor.sizes()).text(),
               shape.text());
}

std::vector<Tensor> run_parts(const Node& node, const std::vector<Tensor>& operands, const InterpretOptions& options) {
  const ForParts::Attrs& attrs = node.as<ForParts>();
  std::vector<TensorType> types;  // their sizes, now that they are known
  for (const Tensor& t : operands) types.push_back(t.type());
  part_types(&attrs, types);
  std::vector<std::vector<Tensor>> results(node.outputs.size());
  for (int64_t part = 0; part < attrs.parts; ++part) {
    std::vector<Tensor> inputs = operands;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (attrs.cuts[i] != ForParts::kWhole) inputs[i] = part_of(operands[i], attrs.cuts[i], attrs.parts, part);
    std::vector<Tensor> made = Run(*node.body, options, false)(inputs);
    for (size_t i = 0; i < results.size(); ++i) results[i].push_back(std::move(made[i]));
  }
  std::vector<Tensor> whole;
  for (size_t i = 0; i < results.size(); ++i) whole.push_back(join_parts(results[i], attrs.joins[i]));
  return whole;
}

std::vector<Tensor> run_body(const Node& node, std::span<const Tensor* const> operands,
                             const InterpretOptions& options) {
  std::vector<Tensor> inputs;
  for (const Tensor* t : operands) {
    OPFUSE_CHECK(t, "a node with a body has an absent operand");
    inputs.push_back(*t);
  }
  if (node.op->name == for_parts_op()->name) return run_parts(node, inputs, options);
  return Run(*node.body, options, false)(inputs);
}

/// Inference again, now with concrete operands: what symbolic or unknown shapes let pass is checked before a reference
/// reads any element.
void check_operands(const Node& node, std::span<const Tensor* const> operands) {
  if (!node.op->infer) return;
  std::vector<TensorType> types(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) continue;
    const DType declared = node.inputs[i]->type.dtype;
    types[i] = {declared == DType::unknown ? operands[i]->dtype() : declared, Shape::of(operands[i]->sizes())};
  }
  node.op->infer(node.attrs(), Inference(types, operands, node.outputs.size()));
}

std::vector<Tensor> run_reference(const Node& node, std::span<const Tensor* const> operands,
                                  const InterpretOptions& options) {
  if (!node.op->reference) {
    const bool opaque = node.op->kind == OpKind::opaque && node.attrs();
    const auto* attrs = opaque ? static_cast<const OpaqueAttrs*>(node.attrs()) : nullptr;
    throw fail(E::unsupported_op, "operator {} cannot be interpreted{}", attrs ? attrs->op_type : node.op->name,
               attrs && !attrs->reason.empty() ? ": " + attrs->reason : "")
        .hint("opfuse keeps operators it does not know, but cannot run them");
  }
  check_operands(node, operands);
  std::vector<Tensor> results = node.op->reference(node.attrs(), operands, options.precision);
  for (size_t i = 0; i < results.size() && i < node.outputs.size(); ++i) {
    results[i] = in_precision(results[i], options.precision);
    if (options.precision == Precision::typed) results[i] = as_declared(results[i], node.outputs[i]->type.dtype);
  }
  return results;
}

}  // namespace

std::vector<Tensor> interpret_node(const Node& node, std::span<const Tensor* const> operands,
                                   const InterpretOptions& options) {
  try {
    std::vector<Tensor> results =
        node.body ? run_body(node, operands, options) : run_reference(node, operands, options);
    OPFUSE_CHECK(results.size() >= node.outputs.size(), "{} gave {} of {} results", node.name(), results.size(),
                 node.outputs.size());
    results.resize(node.outputs.size());
    for (size_t i = 0; i < results.size(); ++i) check_result(node, i, results[i], options);
    return results;
  } catch (Error& error) {
    throw located(std::move(error), *node.op, node.inputs, node.sources).node(node.name()).during("interpret");
  }
}

std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs, const InterpretOptions& options) {
  InterpretOptions bound = options;
  bound.symbols = bind_symbols(graph, inputs, options.symbols);
  std::vector<Tensor> results;
  try {
    results = Run(graph, bound, true)(inputs);
  } catch (const Error& error) {
    // A reference takes a window that is cut at the end, which inference takes for fixed sizes alone.
    if (error.diagnostic().name == "internal") check_given(dim_constraints(graph), bound.symbols);
    throw;
  }
  if (options.keep_exact) return results;
  for (size_t i = 0; i < results.size(); ++i) results[i] = as_declared(results[i], graph.outputs()[i]->type.dtype);
  return results;
}

}  // namespace opfuse
