// Attributes and operands of written nodes.
#include "onnx/node_export.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "onnx/tensor_proto.hpp"

namespace opfuse::onnx {

Error NodeExport::unwritable(const std::string& why, int64_t since) const {
  return fail(E::unsupported_op, "{} {} in opset {}", node.op->name, why, opset)
      .node(node.name())
      .hint(since > 0 ? fmt::format("write with opset {} or newer", since) : "keep the model's own opset");
}

AttrValue NodeExport::take(const std::string& name) {
  for (auto at = attrs.begin(); at != attrs.end(); ++at) {
    if (at->first != name) continue;
    AttrValue value = std::move(at->second);
    attrs.erase(at);
    return value;
  }
  const AttrValue* otherwise = find(node.op->default_attrs, name);
  OPFUSE_CHECK(otherwise, "{} has no attribute {}", node.op->name, name);
  return *otherwise;
}

void NodeExport::set_input(size_t index, std::string name) {
  if (inputs.size() <= index) inputs.resize(index + 1);
  inputs[index] = std::move(name);
}

std::vector<int64_t> NodeExport::operand_to_integers(size_t index, int64_t since) {
  const Value* value = operands[index];
  if (!value->is_constant()) throw unwritable(fmt::format("with computed operand {} cannot be written", index), since);
  inputs[index].clear();
  return value->constant->to_i64();
}

void NodeExport::integers_by_opset(const std::string& name, size_t index, int64_t since) {
  const std::vector<int64_t> values = take_integers(name);
  const bool has_operand = index < operands.size() && operands[index];
  if (opset >= since && !has_operand && !values.empty()) set_input(index, constant(Tensor::from_i64(values)));
  if (opset < since && has_operand) return put(name, operand_to_integers(index, since));
  if (opset < since && !values.empty()) put(name, values);
}

void NodeExport::put(const std::string& name, const AttrValue& value) {
  Encoder a;
  a.bytes(1, name);
  AttributeType type = AttributeType::undefined;
  if (const auto* i = std::get_if<int64_t>(&value)) {
    a.integer(3, *i), type = AttributeType::i;
  } else if (const auto* b = std::get_if<bool>(&value)) {
    a.integer(3, *b ? 1 : 0), type = AttributeType::i;
  } else if (const auto* d = std::get_if<DType>(&value)) {
    a.integer(3, onnx_type_of(*d)), type = AttributeType::i;
  } else if (const auto* f = std::get_if<double>(&value)) {
    a.real(2, static_cast<float>(*f)), type = AttributeType::f;
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    a.bytes(4, *s), type = AttributeType::s;
  } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    a.integers(8, *list), type = AttributeType::ints;
  } else if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    for (double real : *reals) a.real(7, static_cast<float>(real));
    type = AttributeType::floats;
  } else {
    for (const std::string& text : std::get<std::vector<std::string>>(value)) a.bytes(9, text);
    type = AttributeType::strings;
  }
  a.integer(20, static_cast<int64_t>(type));
  encoded.message(5, a);
}

void NodeExport::put_tensor(const std::string& name, const Tensor& value) {
  Encoder a, tensor;
  encode_tensor(value, "", tensor);
  a.bytes(1, name);
  a.message(5, tensor);
  a.integer(20, static_cast<int64_t>(AttributeType::tensor));
  encoded.message(5, a);
}

}  // namespace opfuse::onnx
