// Sequences of a length that is known while reading are lists of values: no node is needed to make one, nor to take an
// element at a constant place. A node that opfuse does not know may read one all the same; then the nodes that made it
// are kept as they are (materialise).
#include <algorithm>

#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "onnx/model_reader.hpp"
#include "ops/axes.hpp"

namespace opfuse::onnx {
namespace {

using Values = std::vector<Value*>;

std::optional<int64_t> constant_integer(const Value* value) {
  if (!value || !value->is_constant() || value->constant->elements() != 1 || !is_integer(value->constant->dtype()))
    return std::nullopt;
  return value->constant->integer(0);
}

/// Parts are cut by slices, which would take what there is where the sizes do not add up to the axis.
std::vector<int64_t> listed_sizes(std::vector<int64_t> sizes, int64_t whole) {
  int64_t left = whole;
  for (const int64_t size : sizes) {
    if (size < 0 || size > left) left = -1;
    if (left < 0) break;
    left -= size;
  }
  if (left != 0) throw fail(E::bad_attribute, "split does not add up to the {} elements of the axis", whole);
  return sizes;
}

/// Sizes of the parts of SplitToSequence: nothing where they depend on open dimensions or on data.
std::optional<std::vector<int64_t>> part_sizes(const Value* x, const Value* split, size_t axis) {
  if (split && !split->is_constant()) return std::nullopt;
  const auto size = x->type.shape[axis].constant();
  if (split && (!is_integer(split->type.dtype) || split->constant->rank() > 1))
    throw fail(E::bad_attribute, "split is {}; an integer, or a list of them, is expected", split->type.text());
  if (!size) return std::nullopt;
  if (split && split->constant->rank() == 1) return listed_sizes(split->constant->to_i64(), *size);
  const int64_t each = split ? split->constant->integer(0) : 1;
  if (each <= 0) throw fail(E::bad_attribute, "split is {}; at least 1 is expected", each);
  std::vector<int64_t> sizes;
  for (int64_t at = 0; at < *size; at += each) sizes.push_back(std::min(each, *size - at));
  return sizes;
}

/// A list of sizes along an open axis: a run checks that they add up.
std::optional<Values> split_by_list(NodeImport& n, Value* x, size_t axis) {
  const Value* split = n.input(1);
  const bool listed = split && split->is_constant() && is_integer(split->type.dtype) && split->constant->rank() == 1;
  if (!listed || split->constant->elements() == 0 || x->type.shape[axis].is_constant()) return std::nullopt;
  n.ignore("keepdims");
  return n.emit("split", {{"axis", static_cast<int64_t>(axis)}}, {x, n.input(1)},
                static_cast<size_t>(split->constant->elements()));
}

std::optional<Values> split_to_sequence(NodeImport& n) {
  Value* x = n.required(0);
  if (!x->type.shape.ranked) return std::nullopt;
  const size_t axis = normalize_axis(n.integer("axis", 0), x->type.shape.rank());
  if (auto parts = split_by_list(n, x, axis)) return parts;
  const bool keep = n.integer("keepdims", 1) != 0 || n.input(1);
  const auto sizes = part_sizes(x, n.input(1), axis);
  if (!sizes) return std::nullopt;
  if (std::ssize(*sizes) > n.limits.sequence_parts)
    throw fail(E::unsupported_op, "a sequence of {} parts: at most {} are folded (--limit sequence_parts=N)",
               sizes->size(), n.limits.sequence_parts);
  Speller s(n);
  Values parts;
  int64_t at = 0;
  for (const int64_t size : *sizes) {
    Value* part = s.slice(x, static_cast<int64_t>(axis), at, at + size);
    parts.push_back(keep ? part : s.op("squeeze", {part, s.integers({static_cast<int64_t>(axis)})}));
    at += size;
  }
  return parts;
}

/// Where an element is inserted, taken or erased; E::bad_dimension outside the sequence.
size_t place(int64_t at, size_t size, bool behind_the_last) {
  const auto n = static_cast<int64_t>(size);
  if (at < -n || at >= n + (behind_the_last ? 1 : 0))
    throw fail(E::bad_dimension, "position {} is outside a sequence of {}", at, n);
  return static_cast<size_t>(at < 0 ? at + n : at);
}

Value* concatenated(NodeImport& n, Values parts) {
  Speller s(n);
  const int64_t axis = n.integer("axis", 0);
  if (n.integer("new_axis", 0) != 0)
    for (Value*& part : parts) part = s.unsqueeze(part, axis);
  return parts.size() == 1 ? s.op("identity", parts) : s.concat(parts, axis);
}

}  // namespace

/// Optionals of which it is known whether they hold anything: what they hold, or nothing.
bool ModelReader::read_optional(const FlatNode& node, const std::string& op) {
  const Bytes result = node.proto.outputs[0];
  const Bytes held = node.proto.inputs.empty() ? Bytes() : node.proto.inputs[0];
  const bool absent = held.empty() || empty_optionals_.contains(held);
  const auto sequence = sequences_.find(held);
  Value* value = absent ? nullptr : value_named(held);
  if (!absent && !value && sequence == sequences_.end()) return false;
  if (op == "OptionalHasElement") {
    define(result, graph_.add_constant(Tensor::scalar(DType::boolean, absent ? 0 : 1)));
    return true;
  }
  if (op == "OptionalGetElement" && absent) throw fail(E::bad_dimension, "an optional that holds nothing is read");
  if (op != "Optional" && op != "OptionalGetElement") return false;
  if (absent) {
    empty_optionals_.insert(result);
  } else if (value) {
    values_[result] = value;
  } else {
    const Sequence copy = sequence->second;
    sequences_[result] = copy;
  }
  return true;
}

bool ModelReader::read_sequence(const FlatNode& node, const Source& source) {
  if (!source.domain.empty() || node.proto.outputs.size() != 1) return false;
  const std::string& op = source.op_type;
  if (op.starts_with("Optional") && read_optional(node, op)) return true;
  const bool makes = op == "SequenceConstruct" || op == "SequenceEmpty" || op == "SplitToSequence";
  const auto found = makes || node.proto.inputs.empty() ? sequences_.end() : sequences_.find(node.proto.inputs[0]);
  if (!makes && found == sequences_.end()) return false;
  Values inputs;
  for (Bytes name : node.proto.inputs) inputs.push_back(sequences_.contains(name) ? nullptr : operand(name));
  NodeImport n(graph_, node.proto, node.opset, inputs, source, tensors_, options_.fold_shapes, options_.limits);
  const Bytes result = node.proto.outputs[0];
  const auto keep = [&](Values values) {
    sequences_[result] = {std::move(values), &node};
    return true;
  };
  if (op == "SequenceConstruct")  // of tensors: one of sequences stays as it is
    return std::find(inputs.begin(), inputs.end(), nullptr) == inputs.end() && keep(inputs);
  if (op == "SequenceEmpty") return keep({});
  if (op == "SplitToSequence") {
    auto parts = split_to_sequence(n);
    return parts && keep(std::move(*parts));
  }
  Values values = found->second.values;
  if (op == "SequenceLength")
    return define(result, graph_.add_constant(Tensor::from_i64({static_cast<int64_t>(values.size())}).reshaped({}))),
           true;
  if (op == "ConcatFromSequence" && !values.empty()) return define(result, concatenated(n, values)), true;
  const size_t at_operand = op == "SequenceInsert" ? 2 : 1;
  const bool last = at_operand >= inputs.size() || !inputs[at_operand];
  const std::optional<int64_t> given = last ? std::optional<int64_t>(-1) : constant_integer(inputs[at_operand]);
  if (!given) return false;
  const int64_t position = given.value_or(-1);
  if (op == "SequenceInsert" && inputs.size() > 1 && inputs[1]) {
    const size_t at = last ? values.size() : place(position, values.size(), true);
    values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), inputs[1]);
    return keep(std::move(values));
  }
  if (op == "SequenceErase") {
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(place(position, values.size(), false)));
    return keep(std::move(values));
  }
  if (op != "SequenceAt" || last) return false;
  Value* element = values[place(position, values.size(), false)];
  values_[result] = element;
  if (element->producer && element->name.empty()) element->name = prefix_ + std::string(result);
  return true;
}

/// Null for "" and for an optional that holds nothing. A name without a value yet is not
/// treated as absent: in the body of an If or a Loop a node may read what a later one defines.
Value* ModelReader::operand(Bytes name) {
  materialise(name);
  Value* value = name.empty() ? nullptr : value_named(name);
  if (value || name.empty() || empty_optionals_.contains(name)) return value;
  if (!broken_.contains(name))
    throw fail(E::missing_tensor, "tensor \"{}\" is read before anything defines it", name)
        .hint("every node of an ONNX graph stands behind those whose results it reads");
  value = graph_.add_input(std::string(name), {DType::unknown, Shape::unknown()});
  values_[name] = value;
  return value;
}

void ModelReader::materialise(Bytes name) {
  const auto found = sequences_.find(name);
  if (found == sequences_.end() || values_.contains(name)) return;
  const FlatNode& node = *found->second.node;
  define(name, make_opaque(node, source_of(node), "sequences are folded only where all that reads them is known")[0]);
}

}  // namespace opfuse::onnx
