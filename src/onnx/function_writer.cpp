// Fused groups as model-local functions: one FunctionProto per distinct structure, named after the module.
//
//     y = dev.opfuse.FusedConvBNReLU <strides = [2, 2]> (x, w, b)
//     FusedConvBNReLU <strides> (x, w, b) => (y) { conv = Conv <strides: ints = @strides> (x, w, b); y = Relu(conv) }
//
// Weights are operands and attributes are the call's, so groups that differ in these and in names share a function;
// scalars and shapes are Constants of the body. Two bodies are one structure when their encodings are equal: inside a
// function names come from operators, never from the model. What a call leaves out has the operator's default.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/fail.hpp"
#include "onnx/graph_writer.hpp"

namespace opfuse::onnx {
namespace {

/// "FusedConvBNReLU__layer1_conv1" -> "FusedConvBNReLU"
std::string module_of(const Node& node) { return node.label.substr(0, node.label.find("__")); }

/// The name of the operand that first reads `value`: "x", "w", "b", ...
std::string port_name(const Value& value) {
  if (value.uses.empty()) return "x";
  const Use& use = value.uses.front();
  if (use.node->body) return port_name(*use.node->body->inputs().at(use.index));
  const auto& ports = use.node->op->inputs;
  return ports.empty() ? "x" : ports[std::min(use.index, ports.size() - 1)].name;
}

bool holds_opaque(const Graph& body) {
  return std::any_of(body.nodes().begin(), body.nodes().end(),
                     [](const Node* n) { return n->op == opaque_op() || (n->body && holds_opaque(*n->body)); });
}

/// "fuses /conv1/Conv, /bn1/BatchNormalization, /relu/Relu; 6.4 MB less to read and write": values inside a group are
/// neither stored nor read again. Without the figure where sizes are open.
std::string doc_of(const Node& node) {
  std::vector<std::string> names;
  for (const Source& source : node.sources) names.push_back(source.name);
  std::string text = fmt::format("fuses {}", fmt::join(names, ", "));
  double saved = 0;
  for (const Node* inner : node.body->nodes())
    for (const Value* value : inner->outputs) {
      if (value->uses.empty()) continue;
      if (!value->type.shape.ranked || !value->type.shape.is_static()) return text;
      double bytes = static_cast<double>(byte_size(value->type.dtype));
      for (int64_t size : value->type.shape.sizes()) bytes *= static_cast<double>(size);
      saved += bytes * static_cast<double>(value->uses.size() + (value->as_output == 0 ? 1 : 0));
    }
  return saved > 0 ? fmt::format("{}; {:.3g} MB less to read and write", text, saved * 1e-6) : text;
}

/// An attribute whose value is whatever the call says of `outer`; of the same `type` either way.
void put_reference(Encoder& fields, Bytes name, Bytes outer, AttributeType type) {
  Encoder a;
  a.bytes(1, name);
  a.integer(20, static_cast<int64_t>(type));
  a.bytes(21, outer);
  fields.message(5, a);
}

struct Usual {
  const char* op_type;
  AttributeType type;
  std::vector<const char*> names;
};
/// Attributes that are left out where they have the default: referred to all the same, so that a function does for
/// both.
const std::vector<Usual>& usual_attributes() {
  static const std::vector<Usual> table = {
      {"Conv", AttributeType::ints, {"dilations", "kernel_shape", "pads", "strides"}},
      {"Conv", AttributeType::i, {"group"}},
      {"ConvTranspose", AttributeType::ints, {"dilations", "kernel_shape", "output_padding", "pads", "strides"}},
      {"ConvTranspose", AttributeType::i, {"group"}},
      {"MaxPool", AttributeType::ints, {"kernel_shape", "pads", "strides"}},
      {"AveragePool", AttributeType::ints, {"kernel_shape", "pads", "strides"}},
      {"Gemm", AttributeType::f, {"alpha", "beta"}},
      {"Gemm", AttributeType::i, {"transA", "transB"}},
  };
  return table;
}

}  // namespace

/// The attributes of a node inside a function, as references to attributes of the call, which gets their values.
/// Tensors and graphs stay.
std::string GraphWriter::refer(const std::string& op_type, Bytes fields) {
  Encoder out;
  const auto outer_name = [&](const std::string& name) {
    std::string outer = name;
    for (int n = 2; !scope_->attributes.insert(outer).second; ++n) outer = fmt::format("{}_{}", name, n);
    return outer;
  };
  std::map<std::string, std::pair<AttributeType, Bytes>> given;  // in the order of names, so that bodies compare
  for_each_field(fields, [&](uint32_t tag, Bytes whole, Bytes bytes, int64_t) {
    const Attribute a = tag == 5 ? parse_attribute(bytes) : Attribute();
    const bool value = a.type == AttributeType::f || a.type == AttributeType::i || a.type == AttributeType::s ||
                       a.type == AttributeType::floats || a.type == AttributeType::ints;
    if (value)
      given[std::string(a.name)] = {a.type, bytes};
    else
      out.raw(whole);
  });
  for (const Usual& usual : usual_attributes())
    if (op_type == usual.op_type)
      for (const char* name : usual.names) given.try_emplace(name, usual.type, Bytes());
  for (const auto& [name, value] : given) {
    const std::string outer = outer_name(name);
    put_reference(out, name, outer, value.first);
    if (value.second.empty()) continue;
    std::string storage;
    scope_->given.bytes(5, renamed_attribute(parse_attribute(value.second), outer, storage));
  }
  return out.text();
}

/// Operands and results get their names before the body's own values. An operand is not a constant here, whatever it is
/// outside.
void GraphWriter::claim_operands(const Node& node, Scope& scope) {
  for (const Value* result : node.outputs) scope.names[result] = unique("y");
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* operand = node.inputs[i];
    if (!operand || scope.names.contains(operand)) continue;
    scope.names[operand] = unique(port_name(*node.body->inputs().at(i)));
    scope.written_constants.insert(operand);
  }
}

void GraphWriter::write_call(const Node& node, Bindings& bindings) {
  if (holds_opaque(*node.body)) return write_body(node, bindings);  // its subgraphs read the main graph by name
  Scope scope;
  scope.function = true;
  scope_ = &scope;
  claim_operands(node, scope);
  write_body(node, bindings);
  Encoder ports;  // FunctionProto's fields 4 to 6
  std::vector<std::string> inputs, outputs;
  std::set<const Value*> listed;
  for (const Value* operand : node.inputs)
    if (operand && listed.insert(operand).second) ports.bytes(4, scope.names.at(operand));
  for (const Value* result : node.outputs) ports.bytes(5, scope.names.at(result));
  for (const std::string& attribute : scope.attributes) ports.bytes(6, attribute);
  scope_ = &main_;
  listed.clear();
  for (const Value* operand : node.inputs)
    if (operand && listed.insert(operand).second) inputs.push_back(name(operand));
  for (const Value* result : node.outputs) outputs.push_back(name(result));
  const std::string function = function_of(node, ports.text() + scope.nodes.text());
  Encoder doc_field;
  doc_field.bytes(6, doc_of(node));
  const std::string doc = doc_field.text();
  encode_node(function, std::string(kFunctionDomain), node.label, inputs, outputs,
              scope.given.text() + doc + encode_record(scope.record, node.pattern));
}

/// The name of the function with this body; the second structure of a module is called FusedConvBNReLU_2.
std::string GraphWriter::function_of(const Node& node, const std::string& encoded) {
  const std::string module = module_of(node);
  const auto [found, fresh] = function_names_.try_emplace(module + '\0' + encoded);
  if (!fresh) return found->second;
  std::string name = module;
  for (int n = 2; !used_function_names_.insert(name).second; ++n) name = fmt::format("{}_{}", module, n);
  found->second = name;
  Encoder function, opset;
  function.bytes(1, name);
  function.raw(encoded);
  function.bytes(8, "A group that opfuse fuses (" + node.pattern + "). Any runtime may inline it.");
  opset.integer(2, opset_);
  function.message(9, opset);
  function.bytes(10, kFunctionDomain);
  functions.message(25, function);
  opsets[std::string(kFunctionDomain)] = 1;
  return name;
}

}  // namespace opfuse::onnx
