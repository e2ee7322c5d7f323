// Differences of codes are at most 255, so their sums of fewer than 2^37 products are exact in double; the low 32 bits
// of the sum are the result.
#include "ops/matmul_integer.hpp"

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "ops/matmul.hpp"

namespace opfuse {
namespace {

void check_codes(const Inference& in, size_t operand) {
  const DType dtype = in.dtype(operand);
  if (dtype != DType::u8 && dtype != DType::i8)
    throw fail(E::unsupported_dtype, "operand {} is {}; u8 or i8 is expected", operand, name_of(dtype));
  require_same_dtype(in, operand, operand + 2);
}

void check_zero(const Inference& in, size_t operand) {
  if (!in.has(operand + 2)) return;
  const Shape& codes = in.shape(operand);
  const Shape zero = MatMulInteger::zero_shape(in.shape(operand + 2), operand);
  bool fits = zero.rank() <= codes.rank();
  for (size_t d = 0; fits && d < zero.rank(); ++d)
    fits = may_equal(zero[d], Dim(1)) || may_equal(zero[d], codes[codes.rank() - zero.rank() + d]);
  if (!fits)
    throw fail(E::shape_mismatch, "zero points of shape {} do not belong to codes of shape {}",
               in.shape(operand + 2).text(), codes.text());
}

/// Differences of codes and zero points, as doubles.
Tensor centred(const Tensor& codes, const Tensor* zero, size_t operand) {
  Tensor y(DType::f64, codes.sizes());
  double* out = reals(y);
  const std::vector<int64_t> all = codes.sizes();
  const std::vector<int64_t> own =
      zero ? MatMulInteger::zero_shape(Shape::of(zero->sizes()), operand).sizes() : std::vector<int64_t>{};
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t at = 0, pitch = 1, rest = i;
    for (size_t d = own.size(), of = all.size(); d-- > 0;) {
      const int64_t index = rest % all[--of];
      rest /= all[of];
      if (own[d] != 1) at += index * pitch;
      pitch *= own[d];
    }
    out[i] = static_cast<double>(codes.integer(i) - (zero ? zero->integer(at) : 0));
  }
  return y;
}

}  // namespace

Shape MatMulInteger::zero_shape(const Shape& zero, size_t operand) {
  const bool rows = operand == 0 && zero.rank() == 1 && !(zero[0] == Dim(1));
  return rows ? Shape{zero[0], Dim(1)} : zero;
}

OpSpec MatMulInteger::spec() {
  return {.name = "matmul_integer",
          .inputs = {{"a"}, {"b"}, optional_port("a_zero"), optional_port("b_zero")},
          .outputs = {{"y"}},
          .kind = OpKind::contraction,
          .doc = "Matrix product of codes in i32."};
}

std::vector<TensorType> MatMulInteger::infer(const Attrs&, const Inference& in) {
  check_codes(in, 0);
  check_codes(in, 1);
  if (has_unranked(in)) return unranked(in, DType::i32);
  check_zero(in, 0);
  check_zero(in, 1);
  const TensorType types[] = {{DType::i32, in.shape(0)}, {DType::i32, in.shape(1)}};
  return MatMul::infer({}, Inference(types, {}, 1));
}

std::vector<Tensor> MatMulInteger::reference(const Attrs&, Tensors in, Precision) {
  const auto zero = [&](size_t i) { return in.size() > i ? in[i] : nullptr; };
  const Tensor a = centred(*in[0], zero(2), 0), b = centred(*in[1], zero(3), 1);
  const Tensor* factors[] = {&a, &b};
  const Tensor sums = MatMul::reference({}, factors, Precision::exact).at(0);
  Tensor y(DType::i32, sums.sizes());
  for (int64_t i = 0; i < y.elements(); ++i) set_wrapped(y, i, static_cast<int64_t>(sums.real(i)));
  return {y};
}

Cost MatMulInteger::cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
  return MatMul::cost({}, in, out);
}

}  // namespace opfuse
