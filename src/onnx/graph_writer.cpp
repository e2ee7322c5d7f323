// Bodies of fused and composite nodes are written in the node's place: what a body reads from outside keeps the outer
// name, what it yields takes the name of the node's result, everything between keeps its own name unless that is taken.
#include "onnx/graph_writer.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "onnx/metadata.hpp"
#include "onnx/opaque.hpp"
#include "onnx/value_info.hpp"

namespace opfuse::onnx {
namespace {

constexpr int64_t kDefaultOpset = 17;

void for_each_node(const Graph& graph, const std::function<void(const Node&)>& visit) {
  for (const Node* node : graph.nodes()) {
    if (node->body)
      for_each_node(*node->body, visit);
    else
      visit(*node);
  }
}

}  // namespace

GraphWriter::GraphWriter(const Graph& graph, const WriteOptions& options) : graph_(graph), options_(options) {
  for (const auto& [key, value] : graph.metadata)
    if (key.starts_with(kOpset)) opsets[key.substr(kOpset.size())] = metadata_number(graph, key, 0);
  choose_opset();
}

void GraphWriter::choose_opset() {
  const int64_t own = metadata_number(graph_, kOpset, kDefaultOpset);
  opset_ = options_.opset > 0 ? options_.opset : own;
  bool keeps_default_domain = false;
  for_each_node(graph_, [&](const Node& node) {
    if (node.is("opaque")) {
      const auto& attrs = *static_cast<const OpaqueAttrs*>(node.attrs());
      keeps_default_domain = keeps_default_domain || attrs.domain.empty();
      if (!attrs.domain.empty() && !node.sources.empty())
        opsets.try_emplace(attrs.domain, std::max<int64_t>(1, node.sources.front().opset));
    } else if (options_.opset == 0) {
      opset_ = std::max(opset_, first_opset_of(node));
    }
  });
  if (keeps_default_domain && opset_ != own)
    throw fail(E::unsupported_op, "the model has operators that opfuse does not know, so its opset {} must be kept",
               own);
  opsets[""] = opset_;
}

/// Names of the outermost graph win over names inside bodies; inputs and outputs win over everything.
void GraphWriter::claim_names(const Graph& graph) {
  for (const auto* list : {&graph.inputs(), &graph.outputs()})
    for (const Value* value : *list)
      if (!value->name.empty()) names_[value] = value->name, used_.insert(value->name);
  for (const Value* value : graph.values())
    if (!value->name.empty() && !names_.contains(value)) names_[value] = unique(value->name);
}

void GraphWriter::run() {
  claim_names(graph_);
  Bindings bindings;
  write_graph(graph_, bindings);
  for (const Value* value : graph_.outputs()) name(value);
}

std::string GraphWriter::unique(const std::string& wish) {
  std::string name = wish;
  for (int n = 1; !used_.insert(name).second; ++n) name = fmt::format("{}_{}", wish, n);
  return name;
}

const Value* GraphWriter::resolve(const Value* value, const Bindings& bindings) const {
  if (!value) return nullptr;
  const auto bound = bindings.find(value);
  return bound == bindings.end() ? value : bound->second;
}

/// The value's name; a constant is written on first use.
const std::string& GraphWriter::name(const Value* value) {
  auto found = names_.find(value);
  if (found == names_.end())
    found = names_
                .emplace(value, unique(!value->name.empty()   ? value->name
                                       : value->is_constant() ? fmt::format("opfuse_constant_{}", value->id)
                                                              : fmt::format("opfuse_value_{}", value->id)))
                .first;
  if (value->is_constant() && written_constants_.insert(value).second)
    initializers.emplace_back(found->second, *value->constant);
  return found->second;
}

std::string GraphWriter::add_initializer(Tensor tensor, const std::string& wish) {
  std::string name = unique(wish);
  initializers.emplace_back(name, std::move(tensor));
  return name;
}

void GraphWriter::write_graph(const Graph& graph, Bindings& bindings) {
  for (const Node* node : graph.nodes()) write_node(*node, bindings);
}

void GraphWriter::write_node(const Node& node, Bindings& bindings) {
  if (node.body) return write_body(node, bindings);
  if (node.is("opaque")) return write_opaque(node, bindings);
  write_known(node, bindings);
}

void GraphWriter::write_body(const Node& node, Bindings& bindings) {
  const Graph& body = *node.body;
  for (size_t i = 0; i < body.inputs().size(); ++i)
    if (const Value* outer = resolve(node.input(i), bindings)) bindings[body.inputs()[i]] = outer;
  std::vector<std::pair<const Value*, const Value*>> copies;
  std::set<const Value*> yielded;
  for (size_t i = 0; i < body.outputs().size(); ++i) {
    const Value* inner = body.outputs()[i];
    const Value* outer = resolve(node.outputs[i], bindings);
    if (inner->producer && yielded.insert(inner).second)
      bindings[inner] = outer;
    else
      copies.emplace_back(inner, outer);  // yields one of its operands, a constant, or a value twice
  }
  write_graph(body, bindings);
  for (const auto& [inner, outer] : copies) write_identity(name(resolve(inner, bindings)), name(outer));
}

void GraphWriter::write_known(const Node& node, const Bindings& bindings) {
  NodeExport n{.node = node, .opset = opset_};
  for (const Value* input : node.inputs) {
    n.operands.push_back(resolve(input, bindings));
    n.inputs.emplace_back();
  }
  const std::string node_name = node.sources.empty() ? fmt::format("{}_{}", node.op->name, node.id) : node.name();
  n.constant = [&](Tensor tensor) { return add_initializer(std::move(tensor), node_name + "_constant"); };
  // A placeholder marks operands that are there; names are asked for at the end, so that constants which
  // become attributes are not written.
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (n.operands[i]) n.inputs[i] = std::string(1, '\0') + std::to_string(i);
  for (const Value* output : node.outputs) n.outputs.push_back(name(resolve(output, bindings)));
  export_known(n);
  for (std::string& input : n.inputs)
    if (!input.empty() && input[0] == '\0') input = name(n.operands[std::stoul(input.substr(1))]);
  std::string fields = n.encoded.text();
  if (const std::string* kept = find_metadata(graph_, std::string(kNodeFields) + node_name)) fields += from_hex(*kept);
  encode_node(n.op_type, "", node_name, n.inputs, n.outputs, fields);
}

void GraphWriter::write_opaque(const Node& node, const Bindings& bindings) {
  const auto& attrs = *static_cast<const OpaqueAttrs*>(node.attrs());
  const OpaquePayload payload = decode_opaque(attrs.raw);
  std::vector<std::string> inputs, outputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* value = resolve(node.inputs[i], bindings);
    const std::string from = value ? name(value) : std::string();
    if (i < payload.listed_inputs) {
      inputs.push_back(from);
      continue;
    }
    // Read by name inside a subgraph: the name must still be there.
    const std::string& wanted = payload.captured.at(i - payload.listed_inputs);
    if (from != wanted && used_.insert(wanted).second) write_identity(from, wanted);
  }
  for (const Value* output : node.outputs) {
    const Value* outer = resolve(output, bindings);
    outputs.push_back(name(outer));
    if (outer->type.dtype != DType::unknown) value_types.bytes(13, encode_value_info(outputs.back(), outer->type));
  }
  encode_node(attrs.op_type, attrs.domain, node.name(), inputs, outputs, payload.fields);
}

void GraphWriter::write_identity(const std::string& from, const std::string& to) {
  encode_node("Identity", "", to + "_identity", {from}, {to}, {});
}

void GraphWriter::encode_node(const std::string& op_type, const std::string& domain, const std::string& name,
                              const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                              Bytes fields) {
  std::string unique_name = name;
  for (int n = 1; !node_names_.insert(unique_name).second; ++n) unique_name = fmt::format("{}_{}", name, n);
  Encoder node;
  for (const std::string& input : inputs) node.bytes(1, input);
  for (const std::string& output : outputs) node.bytes(2, output);
  node.bytes(3, unique_name);
  node.bytes(4, op_type);
  node.raw(fields);
  if (!domain.empty()) node.bytes(7, domain);
  nodes.message(1, node);
}

}  // namespace opfuse::onnx
