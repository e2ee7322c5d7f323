// Shape and type inference: one node, a whole graph, a graph with its symbols bound.
// Results of opaque nodes are unknown, and so is everything computed from an unknown operand, unless
// the model declares it: a declared type is kept where inference knows less.
#include <fmt/format.h>

#include <algorithm>

#include "base/did_you_mean.hpp"
#include "ir/body.hpp"
#include "ir/defined_symbols.hpp"
#include "ir/dim_values.hpp"
#include "ir/located.hpp"

namespace opfuse {

static std::string qualified(const std::string& domain, const std::string& op_type) {
  return domain.empty() ? op_type : domain + "." + op_type;
}

std::string source_operator(const Node& node) {
  if (node.op == opaque_op() && node.attrs() != nullptr) {
    const OpaqueAttrs& kept = *static_cast<const OpaqueAttrs*>(node.attrs());
    if (!kept.op_type.empty()) return qualified(kept.domain, kept.op_type);
  }
  const auto same = [&](const Source& s) {
    return s.op_type == node.sources[0].op_type && s.domain == node.sources[0].domain;
  };
  if (!node.sources.empty() && !node.sources[0].op_type.empty() && std::ranges::all_of(node.sources, same))
    return qualified(node.sources[0].domain, node.sources[0].op_type);  // equal nodes are one
  return node.op->name;
}

std::string op_text(const std::vector<Source>& sources, const OpInfo& op) {
  if (sources.empty() || sources[0].op_type.empty()) return op.name;
  const Source& s = sources[0];
  const std::string type = qualified(s.domain, s.op_type);
  return s.opset > 0 ? fmt::format("{}, opset {}", type, s.opset) : type;
}

Error located(Error error, const OpInfo& op, const std::vector<Value*>& inputs, const std::vector<Source>& sources) {
  const bool fresh = error.diagnostic().operands.empty() && error.diagnostic().node.empty();
  error.node(sources.empty() ? std::string() : sources[0].name).op(op_text(sources, op));
  for (size_t i = 0; fresh && i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    const std::string port = op.inputs.empty() ? "" : op.inputs[std::min(i, op.inputs.size() - 1)].name;
    const Value& v = *inputs[i];
    error.operand(fmt::format("{} : {}   {}{}", port, v.type.text(),
                              v.is_constant() ? "constant"
                              : v.producer    ? "value"
                                              : "graph input",
                              v.name.empty() ? "" : fmt::format(" \"{}\"", v.name)));
  }
  return error;
}

namespace {

TensorType unknown_type() { return {DType::unknown, Shape::unknown()}; }

std::string range_text(size_t low, size_t high, bool variadic) {
  if (variadic) return fmt::format("at least {}", low);
  return low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
}

void check_count(const OpInfo& op, const std::vector<PortSpec>& ports, size_t count, std::string_view what) {
  const bool variadic = !ports.empty() && ports.back().variadic;
  size_t required = 0;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (!ports[i].optional) required = i + 1;
  }
  if (count >= required && (variadic || count <= ports.size())) return;
  throw fail(E::arity_mismatch, "{} takes {} {}s, got {}", op.name, range_text(required, ports.size(), variadic), what,
             count);
}

void check_arity(const OpInfo& op, const std::vector<Value*>& inputs, size_t outputs) {
  check_count(op, op.inputs, inputs.size(), "input");
  check_count(op, op.outputs, outputs, "output");
  for (size_t i = 0; i < inputs.size() && i < op.inputs.size(); ++i) {
    if (inputs[i] == nullptr && !op.inputs[i].optional) {
      throw fail(E::arity_mismatch, "input \"{}\" of {} is required", op.inputs[i].name, op.name);
    }
  }
}

/// The more informed of two types of one value.
TensorType refined(const TensorType& inferred, const TensorType& declared) {
  if (inferred.dtype == DType::unknown) return declared;
  if (!inferred.shape.ranked) return {inferred.dtype, declared.shape};
  return inferred;
}

void infer_body(Node& node) {
  Graph& body = *node.body;
  const std::vector<TensorType> taken = body_input_types(*node.op, node.attrs(), types_of(node.inputs));
  for (size_t i = 0; i < node.inputs.size() && i < body.inputs().size(); ++i) {
    if (node.inputs[i] != nullptr) body.inputs()[i]->type = taken[i];
  }
  body.infer_types();
  const std::vector<TensorType> given = body_result_types(*node.op, node.attrs(), types_of(body.outputs()));
  for (size_t i = 0; i < node.outputs.size() && i < given.size(); ++i) node.outputs[i]->type = given[i];
}

void substitute(const Graph& graph, const SymbolValues& values) {
  for (Value* v : graph.values()) {
    for (Dim& d : v->type.shape.dims) d = d.substitute(values);
  }
  for (const Node* node : graph.nodes()) {
    if (node->body) substitute(*node->body, values);
  }
}

}  // namespace

bool compatible(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype && a.dtype != DType::unknown && b.dtype != DType::unknown) return false;
  if (!a.shape.ranked || !b.shape.ranked) return true;
  if (a.shape.rank() != b.shape.rank()) return false;
  for (size_t i = 0; i < a.shape.rank(); ++i) {
    if (a.shape[i].is_constant() && b.shape[i].is_constant() && !(a.shape[i] == b.shape[i])) return false;
  }
  return true;
}

std::vector<TensorType> infer_node(const OpInfo& op, const void* attrs, const std::vector<Value*>& inputs,
                                   size_t outputs) {
  check_arity(op, inputs, outputs);
  std::vector<TensorType> types;
  std::vector<const Tensor*> constants;
  bool all_known = true;
  for (const Value* v : inputs) {
    types.push_back(v == nullptr ? TensorType{} : v->type);
    constants.push_back(v != nullptr && v->is_constant() ? &*v->constant : nullptr);
    all_known = all_known && (v == nullptr || v->type.dtype != DType::unknown);
  }
  if (!all_known || !op.infer) return std::vector<TensorType>(outputs, unknown_type());
  std::vector<TensorType> results =
      op.infer(attrs, Inference(types, constants, outputs, [&](size_t i) {
                 return i < inputs.size() && inputs[i] != nullptr ? dim_values(*inputs[i]) : std::nullopt;
               }));
  OPFUSE_CHECK(results.size() >= outputs, "inference of {} gives {} types for {} outputs", op.name, results.size(),
               outputs);
  results.resize(outputs);
  for (const TensorType& type : results) {
    for (const Dim& d : type.shape.dims) {
      if (d.is_constant() && d.value() < 0)
        throw fail(E::bad_dimension, "{} would give {}, a negative dimension", op.name, type.text());
    }
  }
  return results;
}

void Graph::infer_types() {
  for (Node* node : order_) {
    if (node->body) {
      infer_body(*node);
      continue;
    }
    try {
      const auto types = infer_node(*node->op, node->attrs(), node->inputs, node->outputs.size());
      for (size_t i = 0; i < types.size(); ++i) node->outputs[i]->type = refined(types[i], node->outputs[i]->type);
    } catch (Error& error) {
      throw located(std::move(error), *node->op, node->inputs, node->sources);
    }
  }
}

void Graph::bind_dimensions(const SymbolValues& values) {
  const std::set<std::string> known_symbols = symbols();
  for (const auto& [symbol, value] : values) {
    if (!known_symbols.contains(symbol)) {
      throw fail(E::unknown_name, "the model has no dimension \"{}\"", symbol)
          .hint(did_you_mean(symbol, {known_symbols.begin(), known_symbols.end()}));
    }
    if (value < 0) throw fail(E::bad_dimension, "dimension {} cannot be {}", symbol, value);
  }
  settle_found_sizes(*this, values);
}

void settle_found_sizes(Graph& graph, const SymbolValues& values) {
  substitute(graph, values);
  graph.infer_types();
}

}  // namespace opfuse
