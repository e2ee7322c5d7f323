// RotaryEmbedding of opset 23 and of ONNX Runtime's own domain: pairs of the first `dim` elements of a head turn by
// angles of their position.
//   (a, b) -> (a cos - b sin, a sin + b cos)
// ONNX Runtime's takes its operands in another order and always positions, of which one alone is that of the first row;
// without num_heads the tables tell how large a head is.
#include "base/fail.hpp"
#include "onnx/attention_parts.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

struct Halves {
  Value *first, *second;
};

/// The elements that turn together: neighbours, or those half a head apart.
Halves halves(Speller& s, Value* x, int64_t axis, int64_t dim, bool interleaved) {
  if (interleaved) return {s.slice(x, axis, 0, dim, 2), s.slice(x, axis, 1, dim, 2)};
  return {s.slice(x, axis, 0, dim / 2), s.slice(x, axis, dim / 2, dim)};
}

Value* joined(Speller& s, const Halves& h, int64_t axis, int64_t dim, bool interleaved) {
  if (!interleaved) return s.concat({h.first, h.second}, axis);
  Value* pairs = s.concat({s.unsqueeze(h.first, axis + 1), s.unsqueeze(h.second, axis + 1)}, axis + 1);
  return s.reshape(pairs, {0, 0, 0, dim});
}

}  // namespace

Value* rotated(Speller& s, Value* x, Value* cos, Value* sin, int64_t size, int64_t dim, bool interleaved) {
  const Halves x12 = halves(s, x, 3, dim, interleaved);
  const auto mul = [&](Value* a, Value* b) { return s.op("mul", {a, b}); };
  const Halves y12{s.op("sub", {mul(cos, x12.first), mul(sin, x12.second)}),
                   s.op("add", {mul(sin, x12.first), mul(cos, x12.second)})};
  Value* y = joined(s, y12, 3, dim, interleaved);
  return dim == size ? y : s.concat({y, s.slice(x, 3, dim, size)}, 3);
}

namespace {

struct Operands {
  Value *x, *cos, *sin;
  Value* positions;  ///< rows of the tables; null: the tables are of each row
  int64_t heads = 0;
};

Results turned(NodeImport& n, Speller& s, const Operands& operands) {
  const bool interleaved = n.integer("interleaved", 0) != 0;
  int64_t dim = n.integer("rotary_embedding_dim", 0);
  const int64_t heads = operands.heads;
  Value* x = operands.x;
  const Shape& shape = x->type.shape;
  if (!shape.ranked || (shape.rank() != 3 && shape.rank() != 4))
    throw fail(E::unsupported_op, "x is {}; three or four dimensions are expected", shape.text());
  const bool flat = shape.rank() == 3;  // [batch, sequence, hidden]
  if (flat && heads <= 0) throw fail(E::bad_attribute, "num_heads is {}; x of three dimensions needs it", heads);
  const auto last = shape[shape.rank() - 1].constant();
  if (!last) throw fail(E::unsupported_op, "the size of a head of {} is not known", shape.text()).hint(kGiveSizes);
  if (flat && *last % heads != 0) throw fail(E::bad_attribute, "num_heads {} does not divide {}", heads, *last);
  const int64_t size = flat ? *last / heads : *last;
  if (dim == 0) dim = size;
  if (dim < 0 || dim > size || dim % 2 != 0)
    throw fail(E::bad_attribute, "rotary_embedding_dim is {}, a head has {} elements", dim, size);
  if (flat) x = s.reshape(x, {0, 0, heads, size});
  Value *cos = operands.cos, *sin = operands.sin;
  for (Value** table : {&cos, &sin}) {
    if (Value* positions = operands.positions) *table = s.op("gather", {*table, positions}, {{"axis", int64_t{0}}});
    *table = s.unsqueeze(*table, flat ? 2 : 1);  // beside the axis of the heads
  }
  Value* y = rotated(s, x, cos, sin, size, dim, interleaved);
  return {flat ? s.reshape(y, {0, 0, *last}) : y};
}

/// Positions of the rows where the operand has the first one's alone.
Value* positions_from(Speller& s, Value* x, Value* first) {
  const Shape& shape = first->type.shape;
  if (!shape.ranked || shape.rank() > 2)
    throw fail(E::unsupported_op, "position_ids is {}; one or two dimensions are expected", shape.text());
  if (shape.rank() == 2) return first;
  Value* row = positions_along(s, x, x->type.shape.rank() - 2);
  return s.unsqueeze(s.op("add", {s.cast(row, first->type.dtype), first}), 0);
}

/// Half of what turns, or half of a head.
int64_t heads_by_tables(const Value* x, const Value* cos) {
  const Shape &shape = x->type.shape, &table = cos->type.shape;
  const auto hidden = shape.ranked && shape.rank() == 3 ? shape[2].constant() : std::nullopt;
  const auto half = table.ranked && table.rank() == 2 ? table[1].constant() : std::nullopt;
  return hidden && half && *half > 0 && *hidden % (2 * *half) == 0 ? *hidden / (2 * *half) : 0;
}

}  // namespace

Results import_rotary_embedding(NodeImport& n) {
  n.require_inputs(3, 4);
  Speller s(n);
  return turned(n, s, {n.required(0), n.required(1), n.required(2), n.input(3), n.integer("num_heads", 0)});
}

Results import_contrib_rotary_embedding(NodeImport& n) {
  n.require_inputs(4, 4);
  if (n.integer("is_packed_batching", 0) != 0)
    throw fail(E::unsupported_attribute, "is_packed_batching = 1 is not supported");
  if (n.real("scale", 1) != 1) throw fail(E::unsupported_attribute, "a scale other than 1 is not supported");
  Speller s(n);
  Value *x = n.required(0), *cos = n.required(2), *sin = n.required(3);
  if (!x->type.shape.ranked || x->type.shape.rank() < 3)
    throw fail(E::unsupported_op, "x is {}; three or four dimensions are expected", x->type.shape.text());
  int64_t heads = n.integer("num_heads", 0);
  if (heads == 0) heads = heads_by_tables(x, cos);
  return turned(n, s, {x, cos, sin, positions_from(s, x, n.required(1)), heads});
}

}  // namespace opfuse::onnx
