// Decoding of onnx.proto's messages. A message is decoded one level at a time (graphs inside attributes stay bytes), so
// nesting in the file never becomes recursion here.
#include "onnx/wire.hpp"

#include <cstring>

#include "base/fail.hpp"
#include "onnx/fields.hpp"

namespace opfuse::onnx {
namespace {

using protozero::pbf_wire_type;

Entry parse_entry(Bytes bytes) {
  Entry entry;
  for (Fields f(bytes, "key-value entry"); f.next();) {
    switch (f.tag()) {
      case 1:
        entry.key = f.bytes();
        break;
      case 2:
        entry.value = f.bytes();
        break;
      default:
        f.skip();
    }
  }
  return entry;
}

Dimension parse_dimension(Bytes bytes) {
  Dimension dim;
  for (Fields f(bytes, "dimension"); f.next();) {
    switch (f.tag()) {
      case 1:
        dim.value = f.integer();
        break;
      case 2:
        dim.param = f.bytes();
        break;
      default:
        f.skip();
    }
  }
  return dim;
}

void parse_tensor_type(Bytes bytes, ValueType& type) {
  for (Fields f(bytes, "tensor type"); f.next();) {
    if (f.tag() == 1) {
      type.elem_type = static_cast<int32_t>(f.integer());
    } else if (f.tag() == 2) {
      type.has_shape = true;
      for (Fields s(f.bytes(), "shape"); s.next();) {
        if (s.tag() == 1)
          type.dims.push_back(parse_dimension(s.bytes()));
        else
          s.skip();
      }
    } else {
      f.skip();
    }
  }
}

ValueType parse_type_proto(Bytes bytes) {
  ValueType type;
  for (Fields f(bytes, "type"); f.next();) {
    switch (f.tag()) {
      case 1:
        type.kind = TypeKind::tensor;
        parse_tensor_type(f.bytes(), type);
        break;
      case 4:
      case 5:
      case 7:
      case 8:
      case 9:
        type.kind = TypeKind::other;
        f.skip();
        break;
      default:
        f.skip();
    }
  }
  return type;
}

OperatorSet parse_opset(Bytes bytes) {
  OperatorSet opset;
  for (Fields f(bytes, "operator set"); f.next();) {
    switch (f.tag()) {
      case 1:
        opset.domain = f.bytes();
        break;
      case 2:
        opset.version = f.integer();
        break;
      default:
        f.skip();
    }
  }
  return opset;
}

void append_floats(Bytes run, std::vector<float>& into, const Fields& f) {
  if (run.size() % sizeof(float) != 0) f.refuse("a list of floats has a broken length");
  const size_t before = into.size();
  into.resize(before + run.size() / sizeof(float));
  if (!run.empty()) std::memcpy(into.data() + before, run.data(), run.size());
}

void append_varints(Bytes run, std::vector<int64_t>& into) {
  const char* at = run.data();
  const char* end = at + run.size();
  try {
    while (at != end) into.push_back(static_cast<int64_t>(protozero::decode_varint(&at, end)));
  } catch (const protozero::exception& error) {
    throw broken("list of integers", error.what());
  }
}

/// Files older than IR version 2 leave the type out; then the field that is set decides.
AttributeType type_of_set_field(const Attribute& a, uint32_t seen) {
  if (!a.ints.empty()) return AttributeType::ints;
  if (!a.floats.empty()) return AttributeType::floats;
  if (!a.strings.empty()) return AttributeType::strings;
  switch (seen) {
    case 2:
      return AttributeType::f;
    case 3:
      return AttributeType::i;
    case 4:
      return AttributeType::s;
    case 5:
      return AttributeType::tensor;
    case 6:
      return AttributeType::graph;
    default:
      return AttributeType::undefined;
  }
}

bool is_attribute_value(uint32_t tag) {
  return (tag >= 2 && tag <= 11) || tag == 14 || tag == 15 || tag == 22 || tag == 23;
}

FunctionProto parse_function(Bytes bytes) {
  FunctionProto function;
  function.raw = bytes;
  for (Fields f(bytes, "function"); f.next();) {
    switch (f.tag()) {
      case 1:
        function.name = f.bytes();
        break;
      case 4:
        function.inputs.push_back(f.bytes());
        break;
      case 5:
        function.outputs.push_back(f.bytes());
        break;
      case 6:
        function.attribute_names.push_back(f.bytes());
        break;
      case 7:
        function.nodes.push_back(parse_node(f.bytes()));
        break;
      case 9:
        function.opsets.push_back(parse_opset(f.bytes()));
        break;
      case 10:
        function.domain = f.bytes();
        break;
      case 11:
        function.attribute_defaults.push_back(parse_attribute(f.bytes()));
        break;
      case 13:
        function.overload = f.bytes();
        break;
      default:
        f.skip();
    }
  }
  return function;
}

}  // namespace

std::vector<int64_t> decode_varints(const std::vector<Bytes>& runs) {
  std::vector<int64_t> values;
  for (Bytes run : runs) append_varints(run, values);
  return values;
}

TensorProto parse_tensor(Bytes bytes) {
  TensorProto t;
  for (Fields f(bytes, "tensor"); f.next();) {
    switch (f.tag()) {
      case 1:
        append_varints(f.run(pbf_wire_type::varint), t.dims);
        break;
      case 2:
        t.data_type = static_cast<int32_t>(f.integer());
        break;
      case 3:
        t.segmented = true;
        f.skip();
        break;
      case 4:
        t.float_data.push_back(f.run(pbf_wire_type::fixed32));
        break;
      case 5:
        t.int32_data.push_back(f.run(pbf_wire_type::varint));
        break;
      case 6:
        t.string_data.push_back(f.bytes());
        break;
      case 7:
        t.int64_data.push_back(f.run(pbf_wire_type::varint));
        break;
      case 8:
        t.name = f.bytes();
        break;
      case 9:
        t.raw_data = f.bytes();
        break;
      case 10:
        t.double_data.push_back(f.run(pbf_wire_type::fixed64));
        break;
      case 11:
        t.uint64_data.push_back(f.run(pbf_wire_type::varint));
        break;
      case 12:
        t.doc_string = f.bytes();
        break;
      case 13:
        t.external_data.push_back(parse_entry(f.bytes()));
        break;
      case 14:
        t.external = f.integer() == 1;
        break;
      default:
        f.skip();
    }
  }
  return t;
}

ValueInfo parse_value_info(Bytes bytes) {
  ValueInfo info;
  info.raw = bytes;
  for (Fields f(bytes, "value info"); f.next();) {
    switch (f.tag()) {
      case 1:
        info.name = f.bytes();
        break;
      case 2:
        info.type = parse_type_proto(f.bytes());
        break;
      default:
        f.skip();
    }
  }
  return info;
}

Attribute parse_attribute(Bytes bytes) {
  Attribute a;
  a.raw = bytes;
  uint32_t seen = 0;
  for (Fields f(bytes, "attribute"); f.next();) {
    const uint32_t tag = f.tag();
    if (tag >= 2 && tag <= 6) seen = tag;
    if (is_attribute_value(tag)) a.fields |= uint32_t{1} << tag;
    switch (tag) {
      case 1:
        a.name = f.bytes();
        break;
      case 2:
        a.f = f.real();
        break;
      case 3:
        a.i = f.integer();
        break;
      case 4:
        a.s = f.bytes();
        break;
      case 5:
        a.tensor = f.bytes();
        break;
      case 6:
        a.graph = f.bytes();
        break;
      case 7:
        append_floats(f.run(pbf_wire_type::fixed32), a.floats, f);
        break;
      case 8:
        append_varints(f.run(pbf_wire_type::varint), a.ints);
        break;
      case 9:
        a.strings.push_back(f.bytes());
        break;
      case 11:
        a.graphs.push_back(f.bytes());
        break;
      case 20:
        a.type = static_cast<AttributeType>(f.integer());
        break;
      case 21:
        a.reference = f.bytes();
        break;
      default:
        f.skip();
    }
  }
  if (a.type == AttributeType::undefined) a.type = type_of_set_field(a, seen);
  return a;
}

NodeProto parse_node(Bytes bytes) {
  NodeProto node;
  for (Fields f(bytes, "node"); f.next();) {
    switch (f.tag()) {
      case 1:
        node.inputs.push_back(f.bytes());
        break;
      case 2:
        node.outputs.push_back(f.bytes());
        break;
      case 3:
        node.name = f.bytes();
        break;
      case 4:
        node.op_type = f.bytes();
        break;
      case 5:
        node.attributes.push_back(parse_attribute(f.bytes()));
        break;
      case 7:
        node.domain = f.bytes();
        break;
      case 8:
        node.overload = f.bytes();
        break;
      default:
        f.keep(node.unknown);
    }
  }
  return node;
}

/// A SparseTensorProto has its values' name.
static Bytes name_of_sparse(Bytes bytes) {
  Bytes name;
  for (Fields f(bytes, "sparse initializer"); f.next();) {
    if (f.tag() == 1)
      name = parse_tensor(f.bytes()).name;
    else
      f.skip();
  }
  return name;
}

GraphProto parse_graph_proto(Bytes bytes) {
  GraphProto graph;
  for (Fields f(bytes, "graph"); f.next();) {
    switch (f.tag()) {
      case 1:
        graph.nodes.push_back(parse_node(f.bytes()));
        break;
      case 2:
        graph.name = f.bytes();
        break;
      case 5:
        graph.initializers.push_back(parse_tensor(f.bytes()));
        break;
      case 11:
        graph.inputs.push_back(parse_value_info(f.bytes()));
        break;
      case 12:
        graph.outputs.push_back(parse_value_info(f.bytes()));
        break;
      case 13:
        graph.values.push_back(parse_value_info(f.bytes()));
        break;
      case 15:
        graph.sparse_initializers.push_back(name_of_sparse(f.bytes()));
        break;
      default:
        f.keep(graph.unknown);
    }
  }
  return graph;
}

ModelProto parse_model(Bytes bytes) {
  ModelProto model;
  bool graph_seen = false;
  for (Fields f(bytes, "model"); f.next();) {
    switch (f.tag()) {
      case 1:
        model.ir_version = f.integer();
        break;
      case 7:
        if (graph_seen) f.refuse("it contains two graphs");
        graph_seen = true;
        model.graph = parse_graph_proto(f.bytes());
        break;
      case 8:
        model.opsets.push_back(parse_opset(f.bytes()));
        break;
      case 14:
        model.metadata.push_back(parse_entry(f.bytes()));
        break;
      case 25:
        model.functions.push_back(parse_function(f.bytes()));
        break;
      default:
        f.keep(model.unknown);
    }
  }
  if (!graph_seen) throw broken("model", "it contains no graph");
  return model;
}

}  // namespace opfuse::onnx
