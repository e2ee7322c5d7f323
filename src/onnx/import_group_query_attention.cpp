// GroupQueryAttention of com.microsoft, as ONNX Runtime GenAI exports decoders:
//
//     [q | k | v] -- rotary of q, k at past + i -- k, v written into the cache at past -- attention -- y, present
//
// Query i of a sample sees keys 0 to past + i. How long the past is differs from sample to sample: `seqlens_k` is the
// number of its keys, new ones with it, less one. The cache is as long as past and new keys together, or, where it has
// room for all keys, as long as it was; `total_sequence_length`, the most keys of a sample, tells which.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.hpp"
#include "ir/dim_values.hpp"
#include "onnx/attention_parts.hpp"
#include "ops/checks.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

enum Operand : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLast,
  kTotal,
  kCos,
  kSin,
  kPositions,
  kBias,
  kSink,
  kOperands
};

struct Attributes {
  int64_t q_heads = 0, kv_heads = 0, window = -1;
  double scale = 0, softcap = 0;
  bool rotary = false, interleaved = false, smooth = false;
};

Attributes read_attributes(NodeImport& n) {
  Attributes a{n.integer("num_heads", 0),
               n.integer("kv_num_heads", 0),
               n.integer("local_window_size", -1),
               n.real("scale", 0),
               n.real("softcap", 0),
               n.integer("do_rotary", 0) != 0,
               n.integer("rotary_interleaved", 0) != 0,
               n.integer("smooth_softmax", 0) == 1};
  if (a.q_heads <= 0 || a.kv_heads <= 0 || a.q_heads % a.kv_heads != 0)
    throw fail(E::bad_attribute, "num_heads is {} and kv_num_heads {}", a.q_heads, a.kv_heads);
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (n.text(name, "NONE") != "NONE")
      throw fail(E::unsupported_attribute, "a cache of codes ({}) is not supported", name);
  n.ignore("kv_cache_bit_width");  // of such a cache
  n.ignore("qk_norm_epsilon");     // of norms whose scales would be operands
  if (n.integer("causal", 1) != 1)
    throw fail(E::unsupported_attribute, "queries that see later keys are not supported");
  if (n.integer("sliding_window_cache", 0) != 0)
    throw fail(E::unsupported_attribute, "a cache that holds no more than the window is not supported");
  if (n.integer("qk_output", 0) != 0) throw fail(E::unsupported_attribute, "qk_output is not supported");
  return a;
}

struct Triple {
  Value *q, *k, *v;  ///< [batch, heads, sequence, size]
};

/// Without a key the query holds all three, each after the other.
Triple heads_of_operands(NodeImport& n, Speller& s, const Attributes& a) {
  Value *q = n.required(kQuery), *k = n.input(kKey), *v = n.input(kValue);
  if (!k != !v) throw fail(E::arity_mismatch, "key and value come together");
  if (!k) {
    if (rank_of(q, "the query") != 3) throw fail(E::shape_mismatch, "the query is {}", q->type.text());
    const int64_t columns = known_size(q, 2), heads = a.q_heads + 2 * a.kv_heads, size = columns / heads;
    if (size == 0 || columns % heads != 0)
      throw fail(E::bad_attribute, "{} columns do not split into {} heads", columns, heads);
    k = s.slice(q, 2, a.q_heads * size, (a.q_heads + a.kv_heads) * size);
    v = s.slice(q, 2, (a.q_heads + a.kv_heads) * size, columns);
    q = s.slice(q, 2, 0, a.q_heads * size);
  }
  return {heads_of(s, q, a.q_heads, "num_heads"), heads_of(s, k, a.kv_heads, "kv_num_heads"),
          heads_of(s, v, a.kv_heads, "kv_num_heads")};
}

/// The first position of each sample's new keys, [batch]: keys in all less new ones, none below 0 (a padded prompt).
Value* past_of(NodeImport& n, Speller& s, Value* q) {
  Value* last = s.reshape(s.cast(n.required(kLast), DType::i64), {-1});
  Value* one_more = s.op("sub", {s.number(1, DType::i64), s.size_of(q, 2)});
  return s.op("max", {s.op("add", {last, one_more}), s.number(0, DType::i64)});
}

/// q or k turned by the angles of their positions.
Value* turned(NodeImport& n, Speller& s, const Attributes& a, Value* x, Value* past) {
  Value *cos = n.required(kCos), *sin = n.required(kSin), *at = n.input(kPositions);
  if (!at) at = s.op("add", {s.unsqueeze(past, 1), s.unsqueeze(positions_along(s, x, 2), 0)});
  const int64_t size = known_size(x, 3), dim = 2 * known_size(cos, 1);
  if (dim > size) throw fail(E::shape_mismatch, "the tables are of {} elements, a head has {}", dim, size);
  const auto row = [&](Value* table) { return s.unsqueeze(s.op("gather", {table, at}, {{"axis", int64_t{0}}}), 1); };
  return rotated(s, x, row(cos), row(sin), size, dim, a.interleaved);
}

/// The cache before its new rows are written: past and room for them, or what has room already. `total` as a vector.
Value* room(Speller& s, Value* past, Value* fresh, Value* total) {
  const auto keys = dim_values(*total);
  if (!keys || keys->size() != 1)
    throw fail(E::unsupported_op, "total_sequence_length, which decides how long the cache is, is computed by the run")
        .hint("where it is an input, give its value: --input NAME=FILE; or export it as the size of the mask");
  const Dim &before = past->type.shape[2], &added = fresh->type.shape[2], &all = keys->front();
  if (before.is_constant() && all.is_constant() && all.value() <= before.value()) return past;
  if (before.is_constant() && before.value() > 0 && !all.is_constant())
    throw fail(E::unsupported_op, "the cache has {} rows, and the most keys of a sample, {}, are not known",
               before.value(), all.text())
        .hint("fix the sizes with --dim, or leave the length of the past open too");
  Value* longer = s.concat({past, fresh}, 2);
  if (before + added == all) return longer;
  // A reshape demands that the sizes are equal, and names them as the model does.
  return s.op("reshape", {longer, s.concat({s.size_of(past, 0), s.size_of(past, 1), total, s.size_of(past, 3)}, 0)});
}

struct Cache {
  Value *k, *v;
};

Cache cache_of(NodeImport& n, Speller& s, const Triple& t, Value* past) {
  Value *k = n.input(kPastKey), *v = n.input(kPastValue);
  if (!k != !v) throw fail(E::arity_mismatch, "past_key and past_value come together");
  if (!k) return {t.k, t.v};
  for (const Value* x : {k, v})
    if (rank_of(x, "the cache") != 4) throw fail(E::shape_mismatch, "a cache is {}", x->type.text());
  Value* total = s.reshape(s.cast(n.required(kTotal), DType::i64), {1});
  return {written_at(s, room(s, k, t.k, total), t.k, past, 2), written_at(s, room(s, v, t.v, total), t.v, past, 2)};
}

/// 0 where a query sees a key, else -inf: [batch, 1, queries, keys].
Value* hidden(Speller& s, const Attributes& a, const Triple& t, Value* k, Value* past) {
  const DType dtype = t.q->type.dtype;
  Value* i = s.op("add", {s.op("unsqueeze", {past, s.integers({1, 2, 3})}),
                          s.op("unsqueeze", {positions_along(s, t.q, 2), s.integers({1})})});
  Value* j = positions_along(s, k, 2);
  Value* seen = s.op("less_or_equal", {j, i});
  if (a.window > 0)
    seen =
        s.op("and", {seen, s.op("less", {i, s.op("add", {j, s.number(static_cast<double>(a.window), DType::i64)})})});
  return s.op("where", {seen, s.number(0, dtype), s.number(-std::numeric_limits<double>::infinity(), dtype)});
}

/// What the caller adds to the scores; a cache with room has more columns than it, all hidden.
Value* bias_of(NodeImport& n, Speller& s, const Value* k) {
  Value* bias = n.input(kBias);
  const size_t rank = rank_of(bias, "attention_bias");
  if (rank == 0 || rank > 4) throw fail(E::shape_mismatch, "attention_bias is {}", bias->type.text());
  const Dim &have = bias->type.shape[rank - 1], &need = k->type.shape[2];
  if (!have.is_constant() || !need.is_constant() || have.value() >= need.value()) return bias;
  std::vector<int64_t> pads(2 * rank, 0);
  pads.back() = need.value() - have.value();
  return s.op("pad", {bias, s.integers(pads), s.number(0, bias->type.dtype)});
}

/// A column that takes part in the sum of a softmax and gives nothing.
Value* softmax_with_sink(Speller& s, Value* scores, Value* sink, int64_t heads) {
  const std::vector<int64_t> one{1};
  Value* shape = s.concat({s.size_of(scores, 0), s.integers({heads}), s.size_of(scores, 2), s.integers(one)}, 0);
  Value* column = s.op("expand", {s.reshape(sink, {1, -1, 1, 1}), shape});
  Value* wide = s.op("softmax", {s.concat({scores, column}, 3)}, {{"axis", int64_t{-1}}});
  return s.slice(wide, 3, 0, -1);
}

Value* attended(NodeImport& n, Speller& s, const Attributes& a, const Triple& t, const Cache& cache, Value* past) {
  const DType dtype = t.q->type.dtype;
  const int64_t times = a.q_heads / a.kv_heads, size = known_size(t.q, 3);
  const double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(size));
  Value* keys = s.transpose(repeated_heads(s, cache.k, times), {0, 1, 3, 2});
  Value* scores = s.op("mul", {s.op("matmul", {t.q, keys}), s.number(scale, dtype)});
  scores = capped(s, scores, a.softcap);
  if (n.input(kBias)) scores = s.op("add", {scores, bias_of(n, s, cache.k)});
  scores = s.op("add", {scores, hidden(s, a, t, cache.k, past)});
  Value* sink = n.input(kSink);
  if (!sink && a.smooth) sink = n.constant(Tensor(dtype, {1}));
  Value* weights = sink ? softmax_with_sink(s, scores, s.cast(sink, dtype), a.q_heads)
                        : s.op("softmax", {scores}, {{"axis", int64_t{-1}}});
  Value* y = s.op("matmul", {weights, repeated_heads(s, cache.v, times)});
  return s.reshape(s.transpose(y, {0, 2, 1, 3}), {0, 0, a.q_heads * known_size(t.v, 3)});
}

}  // namespace

Results import_group_query_attention(NodeImport& n) {
  n.require_inputs(7, 14);
  for (size_t i = kOperands; i < n.inputs.size(); ++i)
    if (n.inputs[i]) throw fail(E::unsupported_op, "operand {}, the scale of a cache of codes, is not supported", i);
  if (n.output_count() > 3) throw fail(E::unsupported_op, "result 3, products of q and k, is not supported");
  const Attributes a = read_attributes(n);
  Speller s(n);
  Triple t = heads_of_operands(n, s, a);
  Value* past = past_of(n, s, t.q);
  if (a.rotary) {
    t.q = turned(n, s, a, t.q, past);
    t.k = turned(n, s, a, t.k, past);
  }
  const Cache cache = cache_of(n, s, t, past);
  Results results{attended(n, s, a, t, cache, past)};
  for (Value* present : {cache.k, cache.v})
    if (results.size() < n.output_count()) results.push_back(s.op("identity", {present}));
  return results;
}

}  // namespace opfuse::onnx
