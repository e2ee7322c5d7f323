// Attention (opsets 23 to 25) as its function body:
//
//     q * sqrt(scale) --.
//                        matmul -- [softcap] -- [+ mask] -- softmax -- [rows without a key: 0] -- matmul -- y
//     k * sqrt(scale) --'                                                              v (repeated) --'
//
// Operands of three dimensions are cut into heads first; with fewer heads of keys than of queries (grouped-query
// attention) keys and values are repeated. A cache (past_key, past_value) goes in front of keys and values.
// `nonpad_kv_seqlen`, the number of keys of each sample, hides the others; a query then stands behind as many keys as
// leave room for all queries. A window hides keys that are too far from where the query stands.
#include <cmath>
#include <limits>

#include "base/fail.hpp"
#include "onnx/attention_parts.hpp"

namespace opfuse::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Attributes {
  bool causal = false;
  int64_t q_heads = 0, kv_heads = 0, output_mode = 0;
  double scale = 0, softcap = 0;
  bool has_scale = false;
  DType softmax_dtype = DType::unknown;
  int64_t left = -1, right = -1;  ///< keys in front of and behind a query that it sees; -1: all
  bool windowed() const { return left >= 0 || right >= 0; }
};

Attributes read_attributes(NodeImport& n) {
  Attributes a;
  a.causal = n.integer("is_causal", 0) != 0;
  a.q_heads = n.integer("q_num_heads", 0);
  a.kv_heads = n.integer("kv_num_heads", 0);
  a.output_mode = n.integer("qk_matmul_output_mode", 0);
  a.softcap = n.real("softcap", 0);
  a.has_scale = n.has("scale");
  a.scale = n.real("scale", 0);
  if (a.output_mode < 0 || a.output_mode > 3)
    throw fail(E::bad_attribute, "qk_matmul_output_mode is {}", a.output_mode);
  if (a.has_scale && !(a.scale >= 0 && std::isfinite(a.scale)))
    throw fail(E::unsupported_attribute, "scale is {}; its square root is taken", a.scale);
  a.left = n.integer("left_window_size", -1);  // opset 25
  a.right = n.integer("right_window_size", -1);
  if (a.left < -1 || a.right < -1) throw fail(E::bad_attribute, "a window of {} and {} keys", a.left, a.right);
  if (a.softcap < 0) throw fail(E::bad_attribute, "softcap is {}", a.softcap);
  if (const int64_t code = n.integer("softmax_precision", 0)) {
    a.softmax_dtype = dtype_of(code);
    if (!is_float(a.softmax_dtype))
      throw fail(E::unsupported_dtype, "softmax_precision asks for element type {}", onnx_type_name(code));
  }
  return a;
}

/// Positions of queries and keys against each other: what hides keys beside a plain causal mask.
class Hidden {
 public:
  Hidden(Speller& s, Value* q, Value* k, Value* past, Value* keys) : s_(s) {
    i_ = s.unsqueeze(positions_along(s, q, 2), 1);  // [queries, 1]
    j_ = s.unsqueeze(positions_along(s, k, 2), 0);  // [1, keys]
    if (keys) {                                     // [batch, 1, 1, 1]
      keys_ = s.op("unsqueeze", {s.cast(keys, DType::i64), s.integers({1, 2, 3})});
      i_ = s.op("add", {i_, s.op("sub", {keys_, s.size_of(q, 2)})});
    } else if (past) {
      i_ = s.op("add", {i_, s.size_of(past, 2)});
    }
  }

  /// 0 where all of what `a` asks for lets a query see a key, else -inf.
  Value* bias(const Attributes& a, DType dtype) {
    Value* seen = nullptr;
    const auto also = [&](Value* condition) { seen = seen ? s_.op("and", {seen, condition}) : condition; };
    if (a.causal) also(s_.op("less_or_equal", {j_, i_}));
    if (a.left >= 0) also(s_.op("less_or_equal", {s_.op("sub", {i_, number(a.left)}), j_}));
    if (a.right >= 0) also(s_.op("less_or_equal", {j_, s_.op("add", {i_, number(a.right)})}));
    if (keys_) also(s_.op("less", {j_, keys_}));
    return s_.op("where", {seen, s_.number(0, dtype), s_.number(-kInfinity, dtype)});
  }

 private:
  Speller& s_;
  Value *i_, *j_, *keys_ = nullptr;
  Value* number(int64_t value) { return s_.number(static_cast<double>(value), DType::i64); }
};

/// The mask as an addend for all keys: a short one masks the keys it does not speak of. One of unknown length is taken
/// to speak of all; where it does not, adding it fails.
Value* mask_bias(Speller& s, Value* mask, const Value* k, DType dtype) {
  const Shape& shape = mask->type.shape;
  if (!shape.ranked || shape.rank() == 0) throw fail(E::unsupported_op, "attn_mask is {}", shape.text());
  const bool boolean = mask->type.dtype == DType::boolean;
  if (!boolean && mask->type.dtype != dtype)
    throw fail(E::dtype_mismatch, "attn_mask is {}, the scores are {}", name_of(mask->type.dtype), name_of(dtype));
  if (boolean) mask = s.op("where", {mask, s.number(0, dtype), s.number(-kInfinity, dtype)});
  const auto have = shape[shape.rank() - 1].constant(), need = k->type.shape[2].constant();
  if (have && !need)
    throw fail(E::unsupported_op, "attn_mask has {} columns and the number of keys, {}, is not known", *have,
               k->type.shape[2].text())
        .hint("fix the number of keys with --dim, or leave the mask's last dimension open too");
  if (!have || *have >= *need) return mask;
  std::vector<int64_t> pads(2 * shape.rank(), 0);
  pads.back() = *need - *have;
  return s.op("pad", {mask, s.integers(pads), s.number(-kInfinity, dtype)});
}

/// A row whose keys are all masked has no softmax; ONNX gives it zeros.
Value* rows_without_keys(Speller& s, Value* scores) {
  Value* top = s.op("reduce_max", {scores, s.integers({3})});
  return s.op("equal", {top, s.number(-kInfinity, scores->type.dtype)});
}

struct Operands {
  Value *q, *k, *v, *past;  ///< k and v with the cache, before heads are repeated
};

Value* cache(Value* x) {
  const Shape& shape = x->type.shape;
  if (!shape.ranked) throw fail(E::unsupported_op, "the rank of past_key or past_value is not known");
  if (shape.rank() != 4)
    throw fail(E::shape_mismatch, "past_key or past_value is {}; four dimensions are expected", shape.text());
  return x;
}

Operands read_operands(NodeImport& n, Speller& s, const Attributes& a) {
  n.require_inputs(3, 7);
  if (n.input(6) && n.input(4)) throw fail(E::arity_mismatch, "nonpad_kv_seqlen does not go with past_key");
  Operands o{heads_of(s, n.required(0), a.q_heads, "q_num_heads"),
             heads_of(s, n.required(1), a.kv_heads, "kv_num_heads"),
             heads_of(s, n.required(2), a.kv_heads, "kv_num_heads"), n.input(4)};
  if (!n.input(4) != !n.input(5)) throw fail(E::arity_mismatch, "past_key and past_value come together");
  if (o.past) {
    o.k = s.concat({cache(n.input(4)), o.k}, 2);
    o.v = s.concat({cache(n.input(5)), o.v}, 2);
  }
  return o;
}

int64_t heads_per_key(const Operands& o) {
  const int64_t q = known_size(o.q, 1), k = known_size(o.k, 1);
  if (k <= 0 || q % k != 0) throw fail(E::bad_attribute, "{} heads of keys do not divide {} of queries", k, q);
  return q / k;
}

Value* scaled(Speller& s, Value* x, double root) { return s.op("mul", {x, s.number(root, x->type.dtype)}); }

}  // namespace

std::vector<Value*> import_attention(NodeImport& n) {
  const Attributes a = read_attributes(n);
  Speller s(n);
  const Operands o = read_operands(n, s, a);
  const int64_t times = heads_per_key(o);
  const DType dtype = o.q->type.dtype;
  const double scale = a.has_scale ? a.scale : 1 / std::sqrt(static_cast<double>(known_size(o.q, 3)));
  Value* keys = s.transpose(repeated_heads(s, o.k, times), {0, 1, 3, 2});
  Value* raw = s.op("matmul", {scaled(s, o.q, std::sqrt(scale)), scaled(s, keys, std::sqrt(scale))});
  Value* soft = capped(s, raw, a.softcap);
  Value* bias = n.input(3) ? mask_bias(s, n.input(3), o.k, dtype) : nullptr;
  const bool hidden = a.windowed() || n.input(6);
  if (a.causal || hidden) {
    Value* unseen =
        hidden ? Hidden(s, o.q, o.k, o.past, n.input(6)).bias(a, dtype) : causal_bias(s, o.q, o.k, o.past, dtype);
    bias = bias ? s.op("add", {bias, unseen}) : unseen;
  }
  Value* scores = bias ? s.op("add", {soft, bias}) : soft;
  Value* wide = a.softmax_dtype == DType::unknown ? scores : s.cast(scores, a.softmax_dtype);
  // Only these can make one. In front of the softmax, so that a kernel that has its maximum may use it.
  Value* none = n.input(3) || hidden ? rows_without_keys(s, scores) : nullptr;
  Value* weights = s.cast(s.op("softmax", {wide}, {{"axis", int64_t{-1}}}), dtype);
  if (none) weights = s.op("where", {none, s.number(0, dtype), weights});
  Value* y = s.op("matmul", {weights, repeated_heads(s, o.v, times)});
  if (n.required(0)->type.shape.rank() == 3)
    y = s.reshape(s.transpose(y, {0, 2, 1, 3}), {0, 0, known_size(o.q, 1) * known_size(o.v, 3)});
  Value* const stages[] = {raw, soft, scores, weights};
  std::vector<Value*> results{y, o.k, o.v, stages[a.output_mode]};
  results.resize(std::max<size_t>(1, n.output_count()));
  for (size_t i = 1; i < results.size(); ++i) results[i] = s.op("identity", {results[i]});
  return results;
}

}  // namespace opfuse::onnx
