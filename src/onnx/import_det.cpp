// Determinants: up to 3 x 3 by the first row, larger ones by elimination, the largest element of a column being its
// pivot. Step by step, of matrices [.., s, s]:
//
//     p = argmax |a[.., 0]|      r = a[p]      det *= +-r[0]      a = a[1..] with row p = a[0]
//     a[i, j] = a[i, j] - a[i, 0] / r[0] r[j],  j > 0             [.., s - 1, s - 1]
#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "onnx/known_shape.hpp"

namespace opfuse::onnx {
namespace {

class Elimination {
 public:
  Elimination(NodeImport& node, Value* x, int64_t size)
      : n_(node), s_(node), rest_(x), size_(size), rows_(static_cast<int64_t>(x->type.shape.rank()) - 2) {}

  Value* run() {
    for (; size_ > 1; --size_) step();
    return scalar(det_ ? s_.op("mul", {det_, rest_}) : rest_);
  }

 private:
  NodeImport& n_;
  Speller s_;
  Value* rest_;
  Value* det_ = nullptr;  ///< [.., 1, 1]
  int64_t size_, rows_;

  int64_t columns() const { return rows_ + 1; }
  Value* scalar(Value* x) { return s_.op("squeeze", {x, s_.integers({rows_, columns()})}); }

  Value* rows_numbers() {
    Tensor t(DType::i64, {size_, 1});
    for (int64_t i = 0; i < size_; ++i) t.set_integer(i, i);
    return n_.constant(std::move(t));
  }

  void step() {
    const auto op = [&](const char* name, std::vector<Value*> in) { return s_.op(name, std::move(in)); };
    Value* zero = s_.number(0, rest_->type.dtype);
    Value* column = op("abs", {s_.slice(rest_, columns(), 0, 1)});
    Value* place = s_.op("arg_max", {column}, {{"axis", rows_}, {"keepdims", true}});
    Value* here = op("equal", {rows_numbers(), place});
    Value* row = s_.op("reduce_sum", {op("where", {here, rest_, zero}), s_.integers({rows_})}, {{"keepdims", true}});
    Value* pivot = s_.slice(row, columns(), 0, 1);
    Value* factor = op("where", {op("equal", {place, s_.integers({0})}), pivot, op("neg", {pivot})});
    det_ = det_ ? op("mul", {det_, factor}) : factor;
    Value* moved = op("where", {here, s_.slice(rest_, rows_, 0, 1), rest_});
    Value* below = s_.slice(moved, rows_, 1, size_);
    Value* divisor = op("where", {op("equal", {pivot, zero}), s_.number(1, rest_->type.dtype), pivot});
    Value* share = op("div", {s_.slice(below, columns(), 0, 1), divisor});
    rest_ = op("sub", {s_.slice(below, columns(), 1, size_), op("mul", {share, s_.slice(row, columns(), 1, size_)})});
  }
};

Value* by_first_row(Speller& s, Value* x, int64_t size) {
  const auto rank = static_cast<int64_t>(x->type.shape.rank());
  const auto at = [&](int64_t i, int64_t j) {
    Value* element = s.slice(s.slice(x, rank - 2, i, i + 1), rank - 1, j, j + 1);
    return s.op("squeeze", {element, s.integers({rank - 2, rank - 1})});
  };
  const auto mul = [&](Value* a, Value* b) { return s.op("mul", {a, b}); };
  const auto minor = [&](int64_t i, int64_t a, int64_t b) {
    return s.op("sub", {mul(at(i, a), at(i + 1, b)), mul(at(i, b), at(i + 1, a))});
  };
  if (size == 1) return at(0, 0);
  if (size == 2) return minor(0, 0, 1);
  Value* first = s.op("sub", {mul(at(0, 0), minor(1, 1, 2)), mul(at(0, 1), minor(1, 0, 2))});
  return s.op("add", {first, mul(at(0, 2), minor(1, 0, 1))});
}

}  // namespace

std::vector<Value*> import_det(NodeImport& n) {
  n.require_inputs(1, 1);
  Speller s(n);
  Value* x = n.required(0);
  const Shape& shape = x->type.shape;
  if (!shape.ranked || shape.rank() < 2) throw fail(E::unsupported_op, "a determinant of {}", x->type.text());
  const int64_t size = known_size(x, shape.rank() - 1);
  if (size < 1 || known_size(x, shape.rank() - 2) != size)
    throw fail(E::unsupported_op, "a determinant of {}: its matrices are not square", x->type.text());
  if (size <= 3) return {by_first_row(s, x, size)};
  if (size > n.limits.unrolled_steps)
    throw fail(E::unsupported_op, "Det of {0} x {0}: at most {1} columns are eliminated, one behind the other", size,
               n.limits.unrolled_steps)
        .hint("--limit unrolled_steps=N");
  const DType type = x->type.dtype, wide = byte_size(type) < 4 ? DType::f32 : type;
  return {s.cast(Elimination(n, s.cast(x, wide), size).run(), type)};
}

}  // namespace opfuse::onnx
