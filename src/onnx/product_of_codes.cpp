// Matrix products of codes in i32, with constant weights in the form that kernels take: i8 without zero points.
//
//   w - zw fits i8       x (w - zw)
//   else, w' = w - h     x w' - (zw - h) sum x        h = 128 of u8, 0 of i8; sums of the rows of x - zx
//
// Both are equal to the model's sum in all 32 bits.
#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"

namespace opfuse::onnx {
namespace {

constexpr int64_t kHalfOfCodes = 128, kLeast = -128, kMost = 127;

/// Constant weights [K, N] with their zero points.
struct Weights {
  const Tensor& codes;
  const Tensor* zero;

  int64_t columns() const { return codes.dim(1); }
  int64_t zero_of(int64_t column) const { return zero ? zero->integer(zero->elements() == 1 ? 0 : column) : 0; }
  int64_t centred(int64_t i) const { return codes.integer(i) - zero_of(i % columns()); }

  bool fits() const {
    for (int64_t i = 0; i < codes.elements(); ++i)
      if (const int64_t w = centred(i); w < kLeast || w > kMost) return false;
    return true;
  }
  bool plain() const {
    bool all = codes.dtype() == DType::i8;
    for (int64_t i = 0; zero && i < zero->elements(); ++i) all = all && zero->integer(i) == 0;
    return all;
  }
};

std::optional<Weights> constant_weights(const Value* b, const Value* zero) {
  if (!b->is_constant() || b->constant->rank() != 2 || (zero && !zero->is_constant())) return std::nullopt;
  const Weights w{*b->constant, zero ? &*zero->constant : nullptr};
  if (w.codes.dtype() != DType::u8 && w.codes.dtype() != DType::i8) return std::nullopt;
  if (w.zero && w.zero->elements() != 1 && w.zero->elements() != w.columns()) return std::nullopt;
  return w;
}

template <class Code>
Tensor codes_of(const Weights& w, const Code& code) {
  Tensor t(DType::i8, w.codes.sizes());
  for (int64_t i = 0; i < t.elements(); ++i) t.set_integer(i, code(i));
  return t;
}

Tensor zeros_of(const Weights& w, int64_t half) {
  const int64_t count = w.zero && w.zero->elements() != 1 ? w.columns() : 1;
  Tensor t(DType::i32, {count});
  for (int64_t i = 0; i < count; ++i) t.set_integer(i, w.zero_of(i) - half);
  return t;
}

/// Sums of x - zx over the last axis.
Value* row_sums(Speller& s, Value* x, Value* zero) {
  Value* codes = s.cast(x, DType::i32);
  if (zero) {
    Value* point = s.cast(zero, DType::i32);
    const Shape& shape = zero->type.shape;
    const bool rows = shape.ranked && shape.rank() == 1 && !(shape[0] == Dim(1));
    codes = s.op("sub", {codes, rows ? s.op("unsqueeze", {point, s.integers({1})}) : point});
  }
  return s.op("reduce_sum", {codes, s.integers({-1})}, {{"keepdims", true}});
}

}  // namespace

bool fits_i8(const Value* b, const Value* b_zero) {
  const auto weights = constant_weights(b, b_zero);
  return weights && weights->fits();
}

Value* product_of_codes(Speller& s, NodeImport& node, Value* a, Value* b, Value* a_zero, Value* b_zero) {
  const auto weights = constant_weights(b, b_zero);
  if (!weights) return s.op("matmul_integer", {a, b, a_zero, b_zero});
  if (weights->plain()) return s.op("matmul_integer", {a, b, a_zero, nullptr});
  if (weights->fits()) {
    Value* centred = node.constant(codes_of(*weights, [&](int64_t i) { return weights->centred(i); }));
    return s.op("matmul_integer", {a, centred, a_zero, nullptr});
  }
  const int64_t half = weights->codes.dtype() == DType::u8 ? kHalfOfCodes : 0;
  Value* shifted =
      half ? node.constant(codes_of(*weights, [&](int64_t i) { return weights->codes.integer(i) - half; })) : b;
  Value* sums = s.op("matmul_integer", {a, shifted, a_zero, nullptr});
  Value* zeros = node.constant(zeros_of(*weights, half));
  return s.op("sub", {sums, s.op("mul", {row_sums(s, a, a_zero), zeros})});
}

}  // namespace opfuse::onnx
