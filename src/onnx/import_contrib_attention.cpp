// Attention and MultiHeadAttention of com.microsoft, as ONNX Runtime's optimiser writes them:
//
//     q --.
//          matmul -- * scale -- [+ mask] [+ attention_bias] [+ causal] -- softmax -- matmul -- y
//     k --'                                                                v ------'
//
// Attention has one product for q, k and v in front, QAttention one of codes. A mask adds `mask_filter_value` to the
// scores of keys that it hides: it is the number of keys of each sample, [batch], or ones for what is seen, [batch,
// keys] or [batch, queries, keys]. A cache stands in front of keys and values and is a result with them.
#include <cmath>
#include <numeric>

#include "base/fail.hpp"
#include "onnx/attention_parts.hpp"
#include "onnx/known_shape.hpp"
#include "ops/checks.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

constexpr double kFilter = -10000;

struct Attributes {
  int64_t heads = 0;
  double scale = 0, filter = kFilter;  ///< scale 0: 1 / sqrt(size of a head)
  bool causal = false;
};

Attributes read_attributes(NodeImport& n) {
  Attributes a{n.integer("num_heads", 0), n.real("scale", 0), n.real("mask_filter_value", kFilter),
               n.integer("unidirectional", 0) != 0};
  if (a.heads <= 0) throw fail(E::bad_attribute, "num_heads is {}", a.heads);
  return a;
}

/// Columns [from, to) of the last axis, of a bias or a product.
Value* columns(Speller& s, Value* x, int64_t from, int64_t to) {
  return s.slice(x, static_cast<int64_t>(rank_of(x, "an operand")) - 1, from, to);
}

/// What the mask adds to scores [batch, heads, queries, keys].
Value* mask_bias(Speller& s, Value* mask, Value* k, double filter, DType dtype) {
  const size_t rank = rank_of(mask, "the mask");
  Value* seen = nullptr;
  if (rank == 1) {
    if (!may_equal(mask->type.shape[0], k->type.shape[0]))
      throw fail(E::unsupported_op, "a mask of {} with starts and ends of the keys is not supported",
                 mask->type.shape.text());
    Value* last = s.op("unsqueeze", {s.cast(mask, DType::i64), s.integers({1, 2, 3})});
    seen = s.op("less", {positions_along(s, k, 2), last});
  } else if (rank == 2 || rank == 3) {
    Value* wide =
        s.op("unsqueeze", {mask, s.integers(rank == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1})});
    seen = s.cast(wide, DType::boolean);
  } else {
    throw fail(E::unsupported_op, "a mask of {} is not supported", mask->type.shape.text());
  }
  return s.op("where", {seen, s.number(0, dtype), s.number(filter, dtype)});
}

struct Operands {
  Value *q, *k, *v;  ///< [batch, heads, sequence, size], keys and values with the cache
  Value *mask, *bias, *past_key;
};

/// [batch, queries, heads * size of a value]
Value* attended(Speller& s, const Attributes& a, const Operands& o) {
  const int64_t size = known_size(o.q, 3);
  const double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(size));
  const DType dtype = o.q->type.dtype;
  Value* scores = s.op("matmul", {o.q, s.transpose(o.k, {0, 1, 3, 2})});
  scores = s.op("mul", {scores, s.number(scale, dtype)});
  if (o.mask) scores = s.op("add", {scores, mask_bias(s, o.mask, o.k, a.filter, dtype)});
  if (o.bias) scores = s.op("add", {scores, o.bias});
  if (a.causal) scores = s.op("add", {scores, causal_bias(s, o.q, o.k, o.past_key, dtype)});
  Value* y = s.op("matmul", {s.op("softmax", {scores}, {{"axis", int64_t{-1}}}), o.v});
  return s.reshape(s.transpose(y, {0, 2, 1, 3}), {0, 0, a.heads * known_size(o.v, 3)});
}

void refuse_inputs(const NodeImport& n, size_t first, const char* what) {
  for (size_t i = first; i < n.inputs.size(); ++i)
    if (n.inputs[i]) throw fail(E::unsupported_op, "operand {}, {}, is not supported", i, what);
}

/// y and what `others` give, as many as the node has.
Results results_of(const NodeImport& n, Speller& s, Value* y, std::vector<Value*> others) {
  Results results{y};
  for (size_t i = 1; i < n.output_count(); ++i) {
    if (i > others.size()) throw fail(E::unsupported_op, "result {} is not supported", i);
    results.push_back(s.op("identity", {others[i - 1]}));
  }
  return results;
}

/// One of the two halves of a cache [2, batch, heads, keys, size].
Value* half_of(Speller& s, Value* past, int64_t which) {
  if (rank_of(past, "past") != 5) throw fail(E::shape_mismatch, "past is {}", past->type.shape.text());
  return s.op("squeeze", {s.slice(past, 0, which, which + 1), s.integers({0})});
}

/// Where q, k and v begin and end among the columns.
std::vector<int64_t> widths(NodeImport& n, int64_t all) {
  if (auto given = n.integers("qkv_hidden_sizes"); given && !given->empty()) {
    if (given->size() != 3 || std::accumulate(given->begin(), given->end(), int64_t{0}) != all)
      throw fail(E::bad_attribute, "qkv_hidden_sizes does not split {} columns in three", all);
    return *given;
  }
  if (all % 3 != 0) throw fail(E::bad_attribute, "{} columns do not split in three", all);
  return {all / 3, all / 3, all / 3};
}

/// [batch, rows, heads, parts, size] -> part `which` as [batch, heads, rows, size]
Value* packed_part(Speller& s, Value* x, int64_t which) {
  Value* part = s.op("squeeze", {s.slice(x, 3, which, which + 1), s.integers({3})});
  return s.transpose(part, {0, 2, 1, 3});
}

struct Triple {
  Value *q, *k, *v;
};

/// Operands 0 to 3 of MultiHeadAttention, which come apart, with k and v as one, or all as one.
Triple heads_of_operands(NodeImport& n, Speller& s, int64_t heads) {
  Value *q = n.required(0), *k = n.input(1), *v = n.input(2), *bias = n.input(3);
  const bool packed = rank_of(q, "query") == 5, pairs = k && rank_of(k, "key") == 5, cut = k && rank_of(k, "key") == 4;
  if (bias && (packed || pairs || cut)) throw fail(E::unsupported_op, "a bias of packed operands is not supported");
  if (packed) return {packed_part(s, q, 0), packed_part(s, q, 1), packed_part(s, q, 2)};
  if (!k || (!v && !pairs)) throw fail(E::arity_mismatch, "key and value are missing, and the query is not packed");
  if (bias) {
    const int64_t a = known_size(q, 2), b = a + known_size(k, 2), c = b + known_size(v, 2);
    q = s.op("add", {q, columns(s, bias, 0, a)});
    k = s.op("add", {k, columns(s, bias, a, b)});
    v = s.op("add", {v, columns(s, bias, b, c)});
  }
  q = heads_of(s, q, heads, "num_heads");
  if (pairs) return {q, packed_part(s, k, 0), packed_part(s, k, 1)};
  return {q, heads_of(s, k, heads, "num_heads"), heads_of(s, v, heads, "num_heads")};
}

}  // namespace

namespace {

/// Of q, k and v side by side in `all`, behind a cache.
Results attention_of(NodeImport& n, Speller& s, Value* all, Value* mask, Value* past, Value* bias) {
  const Attributes a = read_attributes(n);
  for (const char* name : {"do_rotary", "past_present_share_buffer", "rotary_embedding_dim"})
    if (n.integer(name, 0) != 0) throw fail(E::unsupported_attribute, "{} is not supported", name);
  const std::vector<int64_t> w = widths(n, known_size(all, 2));
  const auto part = [&](int64_t from, int64_t width) {
    return heads_of(s, columns(s, all, from, from + width), a.heads, "num_heads");
  };
  Operands o{part(0, w[0]), part(w[0], w[1]), part(w[0] + w[1], w[2]), mask, bias, nullptr};
  std::vector<Value*> others;
  if (past) {
    o.past_key = half_of(s, past, 0);
    o.k = s.concat({o.past_key, o.k}, 2);
    o.v = s.concat({half_of(s, past, 1), o.v}, 2);
  }
  if (n.output_count() > 1) others.push_back(s.concat({s.unsqueeze(o.k, 0), s.unsqueeze(o.v, 0)}, 0));
  return results_of(n, s, attended(s, a, o), others);
}

}  // namespace

Results import_contrib_attention(NodeImport& n) {
  n.require_inputs(2, 7);
  refuse_inputs(n, 6, "past_sequence_length");
  Speller s(n);
  Value* all = s.op("matmul", {n.required(0), n.required(1)});
  if (n.input(2)) all = s.op("add", {all, n.input(2)});
  return attention_of(n, s, all, n.input(3), n.input(4), n.input(5));
}

/// x, weight, bias, scales of x and weight, mask, zero points of x and weight, past
Results import_qattention(NodeImport& n) {
  n.require_inputs(5, 9);
  Speller s(n);
  Value* all = real_product(n, s, {n.required(0), n.required(3), n.input(6)},
                            {n.required(1), n.required(4), n.input(7)}, n.required(2));
  return attention_of(n, s, all, n.input(5), n.input(8), nullptr);
}

Results import_multi_head_attention(NodeImport& n) {
  n.require_inputs(1, 10);
  const Attributes a = read_attributes(n);
  refuse_inputs(n, 8, "of a cache with room");
  Speller s(n);
  const Triple t = heads_of_operands(n, s, a.heads);
  Operands o{t.q, t.k, t.v, n.input(4), n.input(5), n.input(6)};
  if (!n.input(6) != !n.input(7)) throw fail(E::arity_mismatch, "past_key and past_value come together");
  if (o.past_key) {
    o.k = s.concat({o.past_key, o.k}, 2);
    o.v = s.concat({n.input(7), o.v}, 2);
  }
  return results_of(n, s, attended(s, a, o), {o.k, o.v});
}

}  // namespace opfuse::onnx
