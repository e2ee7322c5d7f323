// The messages of onnx.proto, read without copying: every Bytes points into the file's mapping. Only the fields the
// importer understands are decoded; everything else is kept as raw bytes (`unknown`) and written back as it was.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opfuse::onnx {

using Bytes = std::string_view;

struct Entry {
  Bytes key, value;
};

struct Dimension {
  std::optional<int64_t> value;
  Bytes param;  ///< empty: unnamed
};

enum class TypeKind { none, tensor, other };

struct ValueType {
  TypeKind kind = TypeKind::none;
  int32_t elem_type = 0;
  bool has_shape = false;
  std::vector<Dimension> dims;
};

struct ValueInfo {
  Bytes name;
  ValueType type;
  Bytes raw;  ///< the whole message
};

/// Numbers are kept as runs of encoded values: a packed field is one run, an unpacked value a run of one.
struct TensorProto {
  Bytes name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;
  std::optional<Bytes> raw_data;
  std::vector<Bytes> float_data, double_data, int32_data, int64_data, uint64_data;
  std::vector<Bytes> string_data;
  std::vector<Entry> external_data;
  bool external = false;
  bool segmented = false;
  Bytes doc_string;
};

enum class AttributeType {
  undefined = 0,
  f = 1,
  i = 2,
  s = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};

struct Attribute {
  Bytes name;
  Bytes reference;  ///< ref_attr_name: the attribute of the enclosing function whose value this takes
  AttributeType type = AttributeType::undefined;
  float f = 0;
  int64_t i = 0;
  Bytes s, tensor, graph;  ///< tensor and graph: encoded messages
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<Bytes> strings, graphs;
  uint32_t fields = 0;  ///< that hold a value, a bit for each number
  Bytes raw;            ///< the whole message
};

struct NodeProto {
  Bytes name, op_type, domain, overload;
  std::vector<Bytes> inputs, outputs;
  std::vector<Attribute> attributes;
  std::string unknown;  ///< encoded fields that are not decoded (metadata_props, device_configurations, ...)
};

struct OperatorSet {
  Bytes domain;
  int64_t version = 0;
};

struct FunctionProto {
  Bytes name, domain, overload;
  std::vector<Bytes> inputs, outputs, attribute_names;
  std::vector<Attribute> attribute_defaults;
  std::vector<NodeProto> nodes;
  std::vector<OperatorSet> opsets;
  Bytes raw;
};

struct GraphProto {
  Bytes name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfo> inputs, outputs, values;
  std::vector<Bytes> sparse_initializers;  ///< their names
  std::string unknown;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::vector<OperatorSet> opsets;
  std::vector<Entry> metadata;
  std::vector<FunctionProto> functions;
  GraphProto graph;
  std::string unknown;  ///< producer, version, doc_string, training_info, ...
};

// Decoding. All throw E::malformed_model; `what` says in the message what was being read.
ModelProto parse_model(Bytes bytes);
GraphProto parse_graph_proto(Bytes bytes);
NodeProto parse_node(Bytes bytes);
Attribute parse_attribute(Bytes bytes);
TensorProto parse_tensor(Bytes bytes);
ValueInfo parse_value_info(Bytes bytes);

/// Values of runs of varints. E::malformed_model when a varint is broken.
std::vector<int64_t> decode_varints(const std::vector<Bytes>& runs);

/// Calls visit(tag, whole encoded field, value bytes, value number) for each field of a message.
void for_each_field(Bytes message, const std::function<void(uint32_t, Bytes, Bytes, int64_t)>& visit);

/// The attribute's encoding under another name and without its reference, kept in `storage`.
Bytes renamed_attribute(const Attribute& attribute, Bytes name, std::string& storage);

// Encoding, for the writer.
class Encoder {
 public:
  void integer(uint32_t tag, int64_t value);
  void real(uint32_t tag, float value);
  void bytes(uint32_t tag, Bytes value);
  void integers(uint32_t tag, const std::vector<int64_t>& values);  ///< unpacked, as onnx.proto declares them
  void length(uint32_t tag, size_t size);  ///< opens a field whose `size` bytes the caller writes
  void message(uint32_t tag, const Encoder& inner) { bytes(tag, inner.text_); }
  void raw(Bytes encoded) { text_.append(encoded); }  ///< already encoded fields
  const std::string& text() const { return text_; }

 private:
  void varint(uint64_t value);
  std::string text_;
};

}  // namespace opfuse::onnx
