// Packing of opaque nodes. Subgraphs (If, Loop, Scan) read values of the graph around them by name alone; what they
// read is found here, one level at a time.
#include "onnx/opaque.hpp"

#include <set>

#include "base/fail.hpp"

namespace opfuse::onnx {
namespace {

constexpr uint32_t kListedInputs = 1000, kCaptured = 1001;  // field numbers that NodeProto does not use

void collect(Bytes encoded_graph, std::set<Bytes> defined, std::vector<Bytes>& captured, int depth) {
  check_nesting(depth, limits_in_force());
  const GraphProto graph = parse_graph_proto(encoded_graph);
  for (const ValueInfo& input : graph.inputs) defined.insert(input.name);
  for (const TensorProto& initializer : graph.initializers) defined.insert(initializer.name);
  const auto read = [&](Bytes name) {
    if (!name.empty() && !defined.contains(name)) captured.push_back(name);
  };
  for (const NodeProto& node : graph.nodes) {
    for (Bytes name : node.inputs) read(name);
    for (const Attribute& a : node.attributes) {
      if (!a.graph.empty()) collect(a.graph, defined, captured, depth + 1);
      for (Bytes inner : a.graphs) collect(inner, defined, captured, depth + 1);
    }
    defined.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ValueInfo& output : graph.outputs) read(output.name);
}

}  // namespace

void check_nesting(int depth, const Limits& limits) {
  if (depth <= limits.nested_graphs) return;
  throw fail(E::malformed_model, "graphs are nested more than {} deep", limits.nested_graphs)
      .hint("where this is meant, " + how_to_raise("nested_graphs"));
}

std::vector<Bytes> captured_names(const NodeProto& node) {
  std::vector<Bytes> all, unique;
  for (const Attribute& a : node.attributes) {
    if (!a.graph.empty()) collect(a.graph, {}, all, 1);
    for (Bytes inner : a.graphs) collect(inner, {}, all, 1);
  }
  std::set<Bytes> seen;
  for (Bytes name : all)
    if (seen.insert(name).second) unique.push_back(name);
  return unique;
}

std::string encode_opaque(const NodeProto& node, const std::vector<Bytes>& captured) {
  Encoder out;
  for (const Attribute& a : node.attributes) out.bytes(5, a.raw);
  if (!node.overload.empty()) out.bytes(8, node.overload);
  out.raw(node.unknown);
  out.integer(kListedInputs, static_cast<int64_t>(node.inputs.size()));
  for (Bytes name : captured) out.bytes(kCaptured, name);
  return out.text();
}

OpaquePayload decode_opaque(Bytes raw) {
  OpaquePayload payload;
  const NodeProto node = parse_node(raw);
  Encoder fields;
  for (const Attribute& a : node.attributes) fields.bytes(5, a.raw);
  if (!node.overload.empty()) fields.bytes(8, node.overload);
  payload.fields = fields.text();
  // Our own fields are among the node's unknown ones.
  for_each_field(node.unknown, [&](uint32_t tag, Bytes field, Bytes value, int64_t number) {
    if (tag == kListedInputs)
      payload.listed_inputs = static_cast<size_t>(number);
    else if (tag == kCaptured)
      payload.captured.emplace_back(value);
    else
      payload.fields.append(field);
  });
  return payload;
}

}  // namespace opfuse::onnx
