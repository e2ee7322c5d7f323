// Bodies of fused and composite nodes are written in the node's place: what a body reads from outside keeps the outer
// name, what it yields takes the name of the node's result, everything between keeps its own name unless that is taken.
#include "onnx/graph_writer.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "ir/body.hpp"
#include "onnx/metadata.hpp"
#include "onnx/opaque.hpp"
#include "onnx/tensor_proto.hpp"
#include "onnx/value_info.hpp"
#include "ops/choose.hpp"
#include "ops/is_a.hpp"

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
    if (key.starts_with(kOpset) && key.substr(kOpset.size()) != kFunctionDomain)
      opsets[key.substr(kOpset.size())] = metadata_number(graph, key, 0);
  choose_opset();
}

void GraphWriter::choose_opset() {
  const int64_t own = metadata_number(graph_, kOpset, kDefaultOpset);
  opset_ = options_.opset > 0 ? options_.opset : own;
  bool keeps_default_domain = false;
  for_each_node(graph_, [&](const Node& node) {
    if (node.op == opaque_op()) {
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
      if (!value->name.empty()) main_.names[value] = value->name, main_.used.insert(value->name);
  for (const Value* value : graph.values()) {
    const bool unread =
        value->is_constant() && value->uses.empty();  // what remains of constants that moved into bodies
    if (!value->name.empty() && !unread && !main_.names.contains(value)) main_.names[value] = unique(value->name);
  }
}

void GraphWriter::run() {
  claim_names(graph_);
  Bindings bindings;
  write_graph(graph_, bindings);
  for (const Value* value : graph_.outputs()) name(value);
  describe_values();
}

/// Made up for a dimension without a name (onnx/read.cpp); a name in the file would be one.
static bool has_invented(const TensorType& type) {
  std::set<std::string> symbols;
  for (const Dim& dim : type.shape.dims) dim.collect_symbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(), [](const std::string& s) { return s.starts_with("unk__"); });
}

/// The type of every result between inputs and outputs: viewers show it on the edges. By name, since functions keep
/// theirs to themselves.
void GraphWriter::describe_values() {
  std::map<std::string, const TensorType*> types;
  for (const auto& [value, name] : main_.names)
    if (value->producer && value->as_output == 0 && value->type.dtype != DType::unknown) types[name] = &value->type;
  for (const Value* output : graph_.outputs()) types.erase(name_of(output));
  for (const auto& [name, type] : types)
    if (!has_invented(*type)) value_types.bytes(13, encode_value_info(name, *type));
}

std::string GraphWriter::unique(const std::string& wish) {
  std::string name = wish;
  for (int n = 1; !scope_->used.insert(name).second; ++n) name = fmt::format("{}_{}", wish, n);
  return name;
}

const Value* GraphWriter::resolve(const Value* value, const Bindings& bindings) const {
  if (!value) return nullptr;
  const auto bound = bindings.find(value);
  return bound == bindings.end() ? value : bound->second;
}

static std::string wished_name(const Value& value, bool in_function) {
  if (in_function) return value.producer ? value.producer->op->name : "constant";  // functions are shared: no names
  if (!value.name.empty()) return value.name;
  return fmt::format("opfuse_{}_{}", value.is_constant() ? "constant" : "value", value.id);
}

/// The initializer that an equal constant of the same name in another body became: one scalar of the model is one
/// again.
const std::string* GraphWriter::shared_constant(const Value& value) {
  if (scope_->function || !value.is_constant() || value.name.empty()) return nullptr;
  for (const auto& [name, tensor] : initializers)
    if (name == value.name && tensor.same_bits(*value.constant) && scope_->written_constants.insert(&value).second)
      return &name;
  return nullptr;
}

/// The value's name in this scope; a constant is written on first use.
const std::string& GraphWriter::name(const Value* value) {
  auto found = scope_->names.find(value);
  if (found == scope_->names.end()) {
    if (const std::string* shared = shared_constant(*value)) return scope_->names[value] = *shared;
    found = scope_->names.emplace(value, unique(wished_name(*value, scope_->function))).first;
  }
  if (value->is_constant() && scope_->written_constants.insert(value).second)
    write_constant(found->second, *value->constant, value->name);
  return found->second;
}

std::string GraphWriter::add_constant(const Tensor& tensor, const std::string& wish) {
  const std::string name = unique(scope_->function ? "constant" : wish);
  write_constant(name, tensor, {});
  return name;
}

/// An initializer; functions have none, there it is a Constant.
void GraphWriter::write_constant(const std::string& name, const Tensor& tensor, const std::string& origin) {
  if (!scope_->function) {
    initializers.emplace_back(name, tensor);
    return;
  }
  Encoder attribute, value, fields;
  encode_tensor(tensor, "", value);
  attribute.bytes(1, "value");
  attribute.message(5, value);
  attribute.integer(20, static_cast<int64_t>(AttributeType::tensor));
  fields.message(5, attribute);
  scope_->record.add({}, {origin}, {});
  encode_node("Constant", "", "Constant", {}, {name}, fields.text());
}

void GraphWriter::write_graph(const Graph& graph, Bindings& bindings) {
  for (const Node* node : graph.nodes()) write_node(*node, bindings);
}

void GraphWriter::write_node(const Node& node, Bindings& bindings) {
  if (options_.functions && !scope_->function && node.op == fused_op()) return write_call(node, bindings);
  if (node.body) return write_body(node, bindings);
  if (node.op == opaque_op()) return write_opaque(node, bindings);
  if (is_a<Choose>(node)) return write_choice(node, bindings);
  if (is_flattened(node)) return write_flattened(node, bindings);
  write_known(node, bindings);
}

void GraphWriter::write_body(const Node& node, Bindings& bindings) {
  if (!stands_for_body(node))
    throw fail(E::unsupported_op, "{} is not an operator of ONNX: it is made for a target", node.op->name)
        .node(node.name())
        .hint("write the model that the graph was made from");
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
  n.constant = [&](const Tensor& tensor) { return add_constant(tensor, node_name + "_constant"); };
  // A placeholder marks operands that are there; names are asked for at the end, so that constants which
  // become attributes are not written.
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (n.operands[i]) n.inputs[i] = std::string(1, '\0') + std::to_string(i);
  for (const Value* output : node.outputs) n.outputs.push_back(name(resolve(output, bindings)));
  export_known(n);
  for (std::string& input : n.inputs)
    if (!input.empty() && input[0] == '\0') input = name(n.operands[std::stoul(input.substr(1))]);
  std::string kept;
  if (const std::string* hex = find_metadata(graph_, std::string(kNodeFields) + node_name)) kept = from_hex(*hex);
  if (!scope_->function) return encode_node(n.op_type, "", node_name, n.inputs, n.outputs, n.encoded.text() + kept);
  std::vector<std::string> origins;
  for (const Value* output : node.outputs) origins.push_back(output->name);
  scope_->record.add(node_name, origins, kept);
  encode_node(n.op_type, "", n.op_type, n.inputs, n.outputs, refer(n.op_type, n.encoded.text()));
}

/// A branch of an If: a value of the graph around it, under another name.
static void put_branch(Encoder& fields, const char* attribute, const std::string& from, const std::string& to,
                       const TensorType& type) {
  Encoder identity, graph, a;
  identity.bytes(1, from);
  identity.bytes(2, to);
  identity.bytes(4, "Identity");
  graph.message(1, identity);
  graph.bytes(2, attribute);
  graph.bytes(12, encode_value_info(to, type));
  a.bytes(1, attribute);
  a.message(6, graph);
  a.integer(20, static_cast<int64_t>(AttributeType::graph));
  fields.message(5, a);
}

/// An If whose branches give what was computed before it.
void GraphWriter::write_choice(const Node& node, const Bindings& bindings) {
  std::vector<std::string> operands;
  for (const Value* input : node.inputs) operands.push_back(name(resolve(input, bindings)));
  const std::string result = name(resolve(node.output(), bindings));
  Encoder fields;
  put_branch(fields, "then_branch", operands[1], unique(result + "_then"), node.input(1)->type);
  put_branch(fields, "else_branch", operands[2], unique(result + "_else"), node.input(2)->type);
  if (scope_->function) scope_->record.add(node.name(), {node.output()->name}, {});
  encode_node("If", "", scope_->function ? "If" : node.name(), {operands[0]}, {result}, fields.text());
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
    if (from != wanted && scope_->used.insert(wanted).second) write_identity(from, wanted);
  }
  for (const Value* output : node.outputs) {
    const Value* outer = resolve(output, bindings);
    outputs.push_back(name(outer));
  }
  encode_node(attrs.op_type, attrs.domain, node.name(), inputs, outputs, payload.fields);
}

void GraphWriter::write_identity(const std::string& from, const std::string& to) {
  if (scope_->function) scope_->record.add({}, {std::string()}, {});
  encode_node("Identity", "", to + "_identity", {from}, {to}, {});
}

void GraphWriter::encode_node(const std::string& op_type, const std::string& domain, const std::string& name,
                              const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                              Bytes fields) {
  std::string unique_name = name;
  for (int n = 1; !scope_->node_names.insert(unique_name).second; ++n) unique_name = fmt::format("{}_{}", name, n);
  Encoder node;
  for (const std::string& input : inputs) node.bytes(1, input);
  for (const std::string& output : outputs) node.bytes(2, output);
  node.bytes(3, unique_name);
  node.bytes(4, op_type);
  node.raw(fields);
  if (!domain.empty()) node.bytes(7, domain);
  scope_->nodes.message(scope_->function ? 7 : 1, node);  // of FunctionProto, of GraphProto
}

}  // namespace opfuse::onnx
