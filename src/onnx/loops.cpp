// Bodies that run a number of times that is known while reading are read as often, one behind the other: Scan over an
// axis of fixed size, Loop whose number of trips and conditions fold. FlexAttention's modifiers are read in its place.
// What cannot be unrolled is given up with its reason, and all that was read of it with it.
#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "onnx/model_reader.hpp"
#include "ops/axes.hpp"

namespace opfuse::onnx {
namespace {

using Values = std::vector<Value*>;

Bytes body_of(const NodeProto& node, std::string_view name) {
  for (const Attribute& a : node.attributes)
    if (a.name == name && a.type == AttributeType::graph) return a.graph;
  return {};
}

std::optional<int64_t> integer_of(const Value* value) {
  if (!value || !value->is_constant() || value->constant->elements() != 1 || is_float(value->constant->dtype()))
    return std::nullopt;
  return value->constant->integer(0);
}

int64_t at(const std::optional<std::vector<int64_t>>& list, size_t i) {
  return list && i < list->size() ? (*list)[i] : 0;
}

/// One of `steps` slices, without the axis.
Value* slice_of(Speller& s, Value* x, int64_t axis, int64_t i) {
  return s.op("squeeze", {s.slice(x, axis, i, i + 1), s.integers({axis})});
}

Value* stacked(Speller& s, Values parts, int64_t axis, bool backwards) {
  for (Value*& part : parts) part = s.unsqueeze(part, axis);
  if (backwards) std::reverse(parts.begin(), parts.end());
  return parts.size() == 1 ? parts[0] : s.concat(parts, axis);
}

}  // namespace

void ModelReader::check_unrolled(int64_t steps, const Body& body, const Source& source) const {
  const auto nodes = static_cast<int64_t>(std::max<size_t>(body.flat.nodes.size(), 1));
  if (steps > options_.limits.unrolled_nodes / nodes)
    throw fail(E::unsupported_op, "{} runs {} nodes {} times: at most {} are unrolled (--limit unrolled_nodes=N)",
               source.op_type, nodes, steps, options_.limits.unrolled_nodes);
}

/// States and slices in, states and slices out, as often as the axis is long.
std::vector<Value*> ModelReader::unrolled_scan(NodeImport& n, const Source& source) {
  if (n.opset < 9) throw fail(E::unsupported_op, "Scan of opset 8 is not supported");
  const int64_t given = n.integer("num_scan_inputs", 0);
  if (given < 1 || given > std::ssize(n.inputs))
    throw fail(E::bad_attribute, "num_scan_inputs is {} of {} inputs", given, n.inputs.size());
  const auto scanned = static_cast<size_t>(given);
  const size_t states = n.inputs.size() - scanned;
  for (size_t i = 0; i < states; ++i) n.required(i);
  const auto axes = n.integers("scan_input_axes"), ways = n.integers("scan_input_directions");
  const auto out_axes = n.integers("scan_output_axes"), out_ways = n.integers("scan_output_directions");
  std::vector<int64_t> axis;
  std::optional<int64_t> steps;
  for (size_t i = 0; i < scanned; ++i) {
    const Shape& shape = n.required(states + i)->type.shape;
    if (!shape.ranked) throw fail(E::unsupported_op, "the rank of an operand of Scan is not known");
    axis.push_back(static_cast<int64_t>(normalize_axis(at(axes, i), shape.rank())));
    const auto size = shape[static_cast<size_t>(axis.back())].constant();
    if (!size) throw fail(E::unsupported_op, "Scan over an open number of steps is not supported");
    if (steps && *steps != *size) throw fail(E::shape_mismatch, "Scan over axes of {} and {} steps", *steps, *size);
    steps = size;
  }
  const Body& body = keep_body(body_of(n.proto, "body"));
  const size_t results = body.model.graph.outputs.size();
  if (results < states) throw fail(E::arity_mismatch, "the body of Scan has {} results and {} states", results, states);
  if (*steps == 0) throw fail(E::unsupported_op, "Scan over no steps is not supported");
  check_unrolled(*steps, body, source);
  Speller s(n);
  Values state(n.inputs.begin(), n.inputs.begin() + static_cast<std::ptrdiff_t>(states));
  std::vector<Values> slices(results - states);
  for (int64_t t = 0; t < *steps; ++t) {
    Values arguments = state;
    for (size_t i = 0; i < scanned; ++i)
      arguments.push_back(slice_of(s, n.required(states + i), axis[i], at(ways, i) != 0 ? *steps - 1 - t : t));
    const Values made = read_body(body, arguments, fmt::format("{}/{}", source.name, t));
    std::copy_n(made.begin(), states, state.begin());
    for (size_t i = 0; i < slices.size(); ++i) slices[i].push_back(made[states + i]);
  }
  for (size_t i = 0; i < slices.size(); ++i) {
    const Shape& shape = slices[i][0]->type.shape;
    if (!shape.ranked) throw fail(E::unsupported_op, "the rank of a result of Scan's body is not known");
    const auto along = static_cast<int64_t>(normalize_axis(at(out_axes, i), shape.rank() + 1));
    state.push_back(stacked(s, slices[i], along, at(out_ways, i) != 0));
  }
  return state;
}

/// Inputs trips, condition, states; the body takes the trip's number too and tells whether to go on.
std::vector<Value*> ModelReader::unrolled_loop(NodeImport& n, const Source& source) {
  const std::optional<int64_t> trips = integer_of(n.input(0)), first = integer_of(n.input(1));
  if (n.input(0) && !trips) throw fail(E::unsupported_op, "Loop with a computed number of trips is not supported");
  if (n.input(1) && !first) throw fail(E::unsupported_op, "Loop with a computed condition is not supported");
  for (Bytes name : n.proto.inputs)
    if (sequences_.contains(name)) throw fail(E::unsupported_op, "Loop over sequences is not supported");
  const Body& body = keep_body(body_of(n.proto, "body"));
  const size_t states = n.inputs.size() < 2 ? 0 : n.inputs.size() - 2, results = body.model.graph.outputs.size();
  if (results < states + 1) throw fail(E::arity_mismatch, "the body of Loop has {} results", results);
  for (size_t i = 2; i < n.inputs.size(); ++i) n.required(i);
  Speller s(n);
  Values state(n.inputs.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(2, n.inputs.size())), n.inputs.end());
  std::vector<Values> slices(results - states - 1);
  bool goes_on = first.value_or(1) != 0;
  int64_t t = 0;
  for (; goes_on && (!trips || t < *trips); ++t) {
    check_unrolled(t + 1, body, source);
    Values arguments{n.constant(Tensor::from_i64({t}).reshaped({})), n.constant(Tensor::scalar(DType::boolean, 1))};
    arguments.insert(arguments.end(), state.begin(), state.end());
    const Values made = read_body(body, arguments, fmt::format("{}/{}", source.name, t));
    const std::optional<int64_t> next = integer_of(made[0]);
    if (!next) throw fail(E::unsupported_op, "Loop with a computed condition is not supported");
    goes_on = *next != 0;
    std::copy_n(made.begin() + 1, states, state.begin());
    for (size_t i = 0; i < slices.size(); ++i) slices[i].push_back(made[1 + states + i]);
  }
  if (t == 0 && !slices.empty())
    throw fail(E::unsupported_op, "Loop of no trips with results of each is not supported");
  for (const Values& parts : slices) state.push_back(stacked(s, parts, 0, false));
  return state;
}

/// softmax(score_mod(q k^T scale)) with prob_mod behind it, times v
std::vector<Value*> ModelReader::flex_attention(NodeImport& n, const Source& source) {
  n.require_inputs(3, 3);
  Speller s(n);
  Value *q = n.required(0), *k = n.required(1), *v = n.required(2);
  const DType dtype = q->type.dtype;
  const auto size = [&](Value* x, size_t axis) {
    const auto known =
        x->type.shape.ranked && x->type.shape.rank() == 4 ? x->type.shape[axis].constant() : std::nullopt;
    if (!known) throw fail(E::unsupported_op, "heads of {} are not known", x->type.text());
    return *known;
  };
  const int64_t heads = size(q, 1), of_keys = size(k, 1);
  if (of_keys <= 0 || heads % of_keys != 0) throw fail(E::bad_attribute, "{} heads of keys for {}", of_keys, heads);
  const auto repeated = [&](Value* x) {
    if (heads == of_keys) return x;
    Value* wide = s.op("expand", {s.unsqueeze(x, 2), s.integers({1, 1, heads / of_keys, 1, 1})});
    return s.reshape(wide, {0, heads, -1, size(x, 3)});
  };
  const int64_t code = n.integer("softmax_precision", 0);
  const DType wide = code != 0 ? dtype_of(code) : dtype == DType::f64 ? DType::f64 : DType::f32;
  if (!is_float(wide)) throw fail(E::unsupported_dtype, "softmax_precision asks for {}", onnx_type_name(code));
  const double scale = n.real("scale", 1 / std::sqrt(static_cast<double>(size(q, 3))));
  const auto modified = [&](Value* x, const char* by) {
    const Bytes encoded = body_of(n.proto, by);
    n.ignore(by);
    return encoded.empty() ? x : read_body(keep_body(encoded), {x}, fmt::format("{}/{}", source.name, by)).at(0);
  };
  Value* keys = s.cast(s.transpose(repeated(k), {0, 1, 3, 2}), wide);
  Value* scores = s.op("mul", {s.op("matmul", {s.cast(q, wide), keys}), s.number(scale, wide)});
  Value* weights = s.op("softmax", {modified(scores, "score_mod")}, {{"axis", int64_t{-1}}});
  weights = modified(weights, "prob_mod");
  return {s.cast(s.op("matmul", {weights, s.cast(repeated(v), wide)}), dtype)};
}

ModelReader::Unroller ModelReader::unroller(const Source& source) {
  if (source.domain.empty() && source.op_type == "Scan") return &ModelReader::unrolled_scan;
  if (source.domain.empty() && source.op_type == "Loop") return &ModelReader::unrolled_loop;
  if (source.domain == "ai.onnx.preview" && source.op_type == "FlexAttention") return &ModelReader::flex_attention;
  return nullptr;
}

bool ModelReader::read_bodies(const FlatNode& node, const Source& source) {
  const auto unroll = unroller(source);
  if (!unroll) return false;
  read_in_place(node, source, [&] {
    NodeImport n(graph_, node.proto, node.opset, operands(node.proto), source, tensors_, options_.fold_shapes,
                 options_.limits);
    return (this->*unroll)(n, source);
  });
  return true;
}

}  // namespace opfuse::onnx
