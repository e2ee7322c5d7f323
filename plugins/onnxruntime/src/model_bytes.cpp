#include "model_bytes.hpp"

#include <protozero/pbf_writer.hpp>
#include <set>

#include "ort_calls.hpp"

namespace opfuse::ort {
namespace {

using protozero::pbf_writer;

constexpr int kStringElements = 8;  // TensorProto.STRING; ONNX Runtime numbers element types as ONNX does

const ShapeInfo* tensor_info(const ValueInfo* value) {
  const TypeInfo* type = get<const TypeInfo*>(entry::GetValueInfoTypeInfo, value);
  return type ? get<const ShapeInfo*>(entry::CastTypeInfoToTensorInfo, type) : nullptr;
}

void write_shape(pbf_writer& tensor, const ShapeInfo* info) {
  const auto dims = list<int64_t>(entry::GetDimensionsCount, entry::GetDimensions, info);
  std::vector<const char*> names(dims.size());
  if (!dims.empty()) check(tables.api(entry::GetSymbolicDimensions, info, names.data(), names.size()));
  pbf_writer shape(tensor, 2);
  for (size_t i = 0; i < dims.size(); ++i) {
    pbf_writer dim(shape, 1);
    if (dims[i] >= 0)
      dim.add_int64(1, dims[i]);
    else if (names[i] && *names[i])
      dim.add_string(2, names[i]);
  }
}

/// ValueInfoProto, as field `tag` of a GraphProto.
void write_value(pbf_writer& graph, uint32_t tag, const ValueInfo* value) {
  const ShapeInfo* info = tensor_info(value);
  if (!info) throw Failure("value \"" + name_of(value) + "\" is not a tensor");
  pbf_writer out(graph, tag);
  out.add_string(1, name_of(value));
  pbf_writer type(out, 2);
  pbf_writer tensor(type, 1);
  tensor.add_int32(1, get<int>(entry::GetTensorElementType, info));
  if (tables.api(entry::TensorTypeAndShape_HasShape, info)) write_shape(tensor, info);
}

/// TensorProto, as field `tag` of `parent`.
void write_tensor(pbf_writer& parent, uint32_t tag, const std::string& name, const OrtTensor* value) {
  int type = 0;
  const int64_t* sizes = nullptr;
  size_t rank = 0;
  check(tables.api(entry::GetTensorElementTypeAndShapeDataReference, value, &type, &sizes, &rank));
  if (type == kStringElements) throw Failure("\"" + name + "\" holds strings");
  pbf_writer out(parent, tag);
  for (size_t i = 0; i < rank; ++i) out.add_int64(1, sizes[i]);
  out.add_int32(2, type);
  if (!name.empty()) out.add_string(8, name);
  const size_t bytes = get<size_t>(entry::GetTensorSizeInBytes, value);
  const void* data = bytes > 0 ? get<const void*>(entry::GetTensorData, value) : "";
  out.add_bytes(9, static_cast<const char*>(data), bytes);
}

/// Of attributes that are arrays: asked for the size first, which is an error that is not one.
template <class Item>
std::vector<Item> read_array(const OpAttr* attribute, int kind) {
  size_t bytes = 0;
  if (Status* status = tables.api(entry::ReadOpAttr, attribute, kind, nullptr, size_t{0}, &bytes))
    tables.api(entry::ReleaseStatus, status);
  std::vector<Item> items(bytes / sizeof(Item));
  if (!items.empty()) check(tables.api(entry::ReadOpAttr, attribute, kind, items.data(), bytes, &bytes));
  return items;
}

template <class Item>
Item read_one(const OpAttr* attribute, int kind) {
  Item item{};
  size_t bytes = 0;
  check(tables.api(entry::ReadOpAttr, attribute, kind, &item, sizeof item, &bytes));
  return item;
}

void write_attribute(pbf_writer& node, const OpAttr* attribute) {
  const int kind = get<int>(entry::OpAttr_GetType, attribute);
  const std::string name = get<const char*>(entry::OpAttr_GetName, attribute);
  pbf_writer out(node, 5);
  out.add_string(1, name);
  const auto typed = [&](int type) { out.add_int32(20, type); };  // AttributeProto.AttributeType
  switch (kind) {
    case integer:
      typed(2), out.add_int64(3, read_one<int64_t>(attribute, kind));
      break;
    case real:
      typed(1), out.add_float(2, read_one<float>(attribute, kind));
      break;
    case integers:
      typed(7);
      for (const int64_t value : read_array<int64_t>(attribute, kind)) out.add_int64(8, value);
      break;
    case reals:
      typed(6);
      for (const float value : read_array<float>(attribute, kind)) out.add_float(7, value);
      break;
    case string: {
      typed(3);
      const std::vector<char> text = read_array<char>(attribute, kind);
      out.add_bytes(4, text.data(), text.size());
      break;
    }
    case strings: {  // each ends with a zero
      typed(8);
      const std::vector<char> texts = read_array<char>(attribute, kind);
      for (size_t at = 0; at < texts.size(); at += std::char_traits<char>::length(&texts[at]) + 1)
        out.add_string(9, &texts[at]);
      break;
    }
    case tensor: {
      typed(4);
      OrtTensor* value = get<OrtTensor*>(entry::OpAttr_GetTensorAttributeAsOrtValue, attribute);
      if (!value) throw Failure("attribute " + name + " cannot be read");
      write_tensor(out, 5, "", value);
      tables.api(entry::ReleaseValue, value);
      break;
    }
    default:
      throw Failure("attribute " + name + " is of a kind that cannot be read");
  }
}

void write_node(pbf_writer& graph, const Node* node, const std::string& name) {
  pbf_writer out(graph, 1);
  for (const ValueInfo* value : inputs_of(node)) out.add_string(1, name_of(value));
  for (const ValueInfo* value : outputs_of(node)) out.add_string(2, name_of(value));
  out.add_string(3, name);
  out.add_string(4, text_of(entry::Node_GetOperatorType, node));
  for (const OpAttr* attribute : list<const OpAttr*>(entry::Node_GetNumAttributes, entry::Node_GetAttributes, node))
    write_attribute(out, attribute);
  out.add_string(7, text_of(entry::Node_GetDomain, node));
}

bool is_read_outside(const ValueInfo* value, const std::set<const Node*>& inside) {
  if (get<bool>(entry::ValueInfo_IsGraphOutput, value)) return true;
  std::vector<const Node*> readers(get<size_t>(entry::ValueInfo_GetValueNumConsumers, value));
  std::vector<int64_t> places(readers.size());
  if (!readers.empty())
    check(tables.api(entry::ValueInfo_GetValueConsumers, value, readers.data(), places.data(), readers.size()));
  for (size_t i = 0; i < readers.size(); ++i)
    if (places[i] < 0 || !inside.contains(readers[i])) return true;  // negative: a subgraph of the node reads it
  return false;
}

void write_opsets(pbf_writer& model, const Graph* graph) {
  std::vector<const char*> domains(get<size_t>(entry::Graph_GetNumOperatorSets, graph));
  std::vector<int64_t> versions(domains.size());
  check(tables.api(entry::Graph_GetOperatorSets, graph, domains.data(), versions.data(), domains.size()));
  for (size_t i = 0; i < domains.size(); ++i) {
    pbf_writer opset(model, 8);
    opset.add_string(1, domains[i]);
    opset.add_int64(2, versions[i]);
  }
}

}  // namespace

std::string cannot_write(const Node* node) {
  if (get<size_t>(entry::Node_GetNumSubgraphs, node) > 0) return "it has a graph of its own";
  auto values = inputs_of(node);
  for (const ValueInfo* value : outputs_of(node)) values.push_back(value);
  for (const ValueInfo* value : values) {
    const ShapeInfo* info = value && !name_of(value).empty() ? tensor_info(value) : nullptr;
    if (value && !name_of(value).empty() && !info) return "\"" + name_of(value) + "\" is not a tensor";
    if (info && get<int>(entry::GetTensorElementType, info) == kStringElements)
      return "\"" + name_of(value) + "\" holds strings";
  }
  return "";
}

ModelBytes model_of(const Graph* graph, const std::vector<const Node*>& nodes) {
  const std::set<const Node*> inside(nodes.begin(), nodes.end());
  ModelBytes made;
  std::set<std::string> produced, seen;
  for (const Node* node : nodes)
    for (const ValueInfo* value : outputs_of(node)) produced.insert(name_of(value));
  pbf_writer model(made.bytes);
  model.add_int64(1, get<int64_t>(entry::Graph_GetOnnxIRVersion, graph));
  write_opsets(model, graph);
  pbf_writer body(model, 7);
  body.add_string(2, "onnxruntime");
  for (const Node* node : nodes) {
    std::string name = text_of(entry::Node_GetName, node);
    if (name.empty()) name = text_of(entry::Node_GetOperatorType, node);
    while (!made.nodes.try_emplace(name, node).second) name += "_" + std::to_string(made.nodes.size());
    write_node(body, node, name);
    for (const ValueInfo* value : inputs_of(node)) {
      const std::string operand = name_of(value);
      if (operand.empty() || produced.contains(operand) || !seen.insert(operand).second) continue;
      const OrtTensor* constant = nullptr;
      if (get<bool>(entry::ValueInfo_IsConstantInitializer, value))
        constant = get<const OrtTensor*>(entry::ValueInfo_GetInitializerValue, value);
      if (constant) {
        write_tensor(body, 5, operand, constant);
      } else {
        write_value(body, 11, value);
        made.inputs.push_back(operand);
      }
    }
    for (const ValueInfo* value : outputs_of(node))
      if (!name_of(value).empty() && is_read_outside(value, inside)) {
        write_value(body, 12, value);
        made.outputs.push_back(name_of(value));
      }
  }
  return made;
}

}  // namespace opfuse::ort
