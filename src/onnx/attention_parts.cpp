#include "onnx/attention_parts.hpp"

#include <limits>

#include "base/fail.hpp"

namespace opfuse::onnx {

Value* heads_of(Speller& s, Value* x, int64_t heads, const char* attribute) {
  const Shape& shape = x->type.shape;
  if (!shape.ranked) throw fail(E::unsupported_op, "the rank of an operand is not known");
  if (shape.rank() == 4) return x;
  if (shape.rank() != 3)
    throw fail(E::shape_mismatch, "an operand is {}; three or four dimensions are expected", shape.text());
  if (heads <= 0) throw fail(E::bad_attribute, "{} is {}; operands of three dimensions need it", attribute, heads);
  const auto hidden = shape[2].constant();
  if (!hidden) throw fail(E::unsupported_op, "the last dimension of {} is not known", shape.text()).hint(kGiveSizes);
  if (*hidden % heads != 0)
    throw fail(E::bad_attribute, "{} is {}, which does not divide {}", attribute, heads, *hidden);
  return s.transpose(s.reshape(x, {0, 0, heads, *hidden / heads}), {0, 2, 1, 3});
}

Value* causal_bias(Speller& s, Value* q, Value* k, Value* past, DType dtype) {
  Value* sizes = s.concat({s.size_of(q, 2), s.size_of(k, 2)}, 0);
  Value* all = s.op("constant_of_shape", {sizes}, {{"value", 1.0}, {"dtype", DType::boolean}});
  std::vector<Value*> operands{all};
  if (past) operands.push_back(s.reshape(s.size_of(past, 2), {}));
  Value* seen = s.op("trilu", std::move(operands), {{"upper", false}});
  return s.op("where", {seen, s.number(0, dtype), s.number(-std::numeric_limits<double>::infinity(), dtype)});
}

/// [b, h, s, d] -> [b, h, 1, s, d] -> [b, h, times, s, d] -> [b, h * times, s, d]
Value* repeated_heads(Speller& s, Value* x, int64_t times) {
  if (times == 1) return x;
  const int64_t heads = known_size(x, 1), size = known_size(x, 3);
  Value* wide = s.op("expand", {s.unsqueeze(x, 2), s.integers({1, 1, times, 1, 1})});
  return s.reshape(wide, {0, heads * times, -1, size});
}

Value* capped(Speller& s, Value* scores, double cap) {
  if (cap == 0) return scores;
  Value* limit = s.number(cap, scores->type.dtype);
  return s.op("mul", {s.op("tanh", {s.op("div", {scores, limit})}), limit});
}

}  // namespace opfuse::onnx
