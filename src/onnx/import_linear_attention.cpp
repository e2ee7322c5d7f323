// Recurrences of language models that keep a state instead of keys and values, step by step, and what surrounds them.
//   LinearAttention      S = decay S + k (x) v';   o = scale q S       v' = v, or beta (v - S k): the delta rule
//   CausalConvWithState  a depthwise convolution behind the state; the state's next is the end of what it read
//   SwiGLU               a sigmoid(alpha a) b
#include <cmath>

#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "onnx/known_shape.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

struct Recurrence {
  NodeImport& n;
  Speller s;
  int64_t q_heads, heads, steps, key_size, value_size;
  double scale;
  bool gated = false, corrected = false;

  explicit Recurrence(NodeImport& node) : n(node), s(node) {
    n.require_inputs(3, 6);
    n.ignore("chunk_size");  // how it is computed, not what
    q_heads = n.integer("q_num_heads", 0);
    heads = n.integer("kv_num_heads", 0);
    const std::string rule = n.text("update_rule", "gated_delta");
    if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
      throw fail(E::bad_attribute, "update_rule is \"{}\"", rule);
    gated = rule == "gated" || rule == "gated_delta";
    corrected = rule == "delta" || rule == "gated_delta";
    if (q_heads <= 0 || heads <= 0 || q_heads % heads != 0)
      throw fail(E::bad_attribute, "{} heads of keys for {} of queries", heads, q_heads);
    if (gated != (n.input(4) != nullptr) || corrected != (n.input(5) != nullptr))
      throw fail(E::arity_mismatch, "decay and beta do not belong to update_rule \"{}\"", rule);
    steps = known_size(n.required(0), 1);
    key_size = known_size(n.required(0), 2) / q_heads;
    value_size = known_size(n.required(2), 2) / heads;
    scale = n.real("scale", 0);
    if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(key_size));
    if (steps > n.limits.unrolled_steps)
      throw fail(E::unsupported_op, "LinearAttention over {} steps: at most {} are unrolled (--limit unrolled_steps=N)",
                 steps, n.limits.unrolled_steps);
  }

  /// [batch, steps, count * size] -> [batch, count, steps, size], in single precision
  Value* heads_of(Value* x, int64_t count, int64_t size) {
    return s.cast(s.transpose(s.reshape(x, {0, 0, count, size}), {0, 2, 1, 3}), DType::f32);
  }
  /// Step `t` of it, the rows of a product: [batch, count, 1, size]
  Value* step(Value* x, int64_t t) { return s.slice(x, 2, t, t + 1); }
  Value* column(Value* x) { return s.transpose(x, {0, 1, 3, 2}); }

  Value* first_state() {
    if (Value* past = n.input(3)) return s.cast(past, DType::f32);
    Value* sizes = s.concat({s.size_of(n.required(0), 0), s.integers({heads, key_size, value_size})}, 0);
    return s.op("constant_of_shape", {sizes}, {{"dtype", DType::f32}});
  }

  Value* for_queries(Value* state) {
    if (q_heads == heads) return state;
    const int64_t times = q_heads / heads;
    Value* wide = s.op("expand", {s.unsqueeze(state, 2), s.integers({1, 1, times, 1, 1})});
    return s.reshape(wide, {0, q_heads, key_size, value_size});
  }

  Results run() {
    Value *q = heads_of(n.required(0), q_heads, key_size), *k = heads_of(n.required(1), heads, key_size);
    Value* v = heads_of(n.required(2), heads, value_size);
    Value *decay = nullptr, *beta = nullptr;
    if (gated) {
      const int64_t last = known_size(n.required(4), 2);
      if (last % heads != 0) throw fail(E::shape_mismatch, "decay is {}", n.required(4)->type.text());
      decay = s.op("exp", {heads_of(n.required(4), heads, last / heads)});
    }
    if (corrected) beta = heads_of(n.required(5), known_size(n.required(5), 2), 1);
    Value* state = first_state();
    Results outputs;
    for (int64_t t = 0; t < steps; ++t) {
      Value *kt = step(k, t), *vt = step(v, t);
      if (decay) state = s.op("mul", {state, column(step(decay, t))});
      if (corrected) vt = s.op("mul", {step(beta, t), s.op("sub", {vt, s.op("matmul", {kt, state})})});
      state = s.op("add", {state, s.op("mul", {column(kt), vt})});
      outputs.push_back(s.op("matmul", {step(q, t), for_queries(state)}));
    }
    Value* y = outputs.size() == 1 ? outputs[0] : s.concat(outputs, 2);
    y = s.op("mul", {y, s.number(scale, DType::f32)});
    y = s.reshape(s.transpose(y, {0, 2, 1, 3}), {0, 0, q_heads * value_size});
    const DType dtype = n.required(0)->type.dtype, of_state = n.input(3) ? n.input(3)->type.dtype : dtype;
    Results results{s.cast(y, dtype), s.cast(state, of_state)};
    results.resize(std::max<size_t>(1, n.output_count()));
    return results;
  }
};

}  // namespace

Results import_linear_attention(NodeImport& n) { return Recurrence(n).run(); }

Results import_causal_conv_with_state(NodeImport& n) {
  n.require_inputs(2, 4);
  Speller s(n);
  Value *x = n.required(0), *weights = n.required(1);
  const std::string activation = n.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    throw fail(E::bad_attribute, "activation is \"{}\"", activation);
  const int64_t channels = known_size(x, 1), kept = known_size(weights, 2) - 1;
  Value* read = x;
  if (Value* past = n.input(3))
    read = s.concat({past, x}, 2);
  else if (kept > 0)
    read = s.op("pad", {x, s.integers({0, 0, kept, 0, 0, 0}), s.number(0, x->type.dtype)});
  Results operands{read, weights};
  if (n.input(2)) operands.push_back(n.input(2));
  Value* y = s.op("conv", operands, {{"group", channels}});
  if (activation != "none") y = s.op("silu", {y});
  Results results{y};
  if (n.output_count() > 1) {
    Value* end = s.size_of(read, 2);
    Value* from = s.op("sub", {end, s.integers({kept})});
    results.push_back(s.op("slice", {read, from, end, s.integers({2})}));
  }
  return results;
}

Results import_swiglu(NodeImport& n) {
  n.require_inputs(2, 2);
  Speller s(n);
  Value* gate = s.op("silu", {n.required(0)}, {{"alpha", n.real("alpha", 1)}});
  return {s.op("mul", {gate, n.required(1)})};
}

}  // namespace opfuse::onnx
