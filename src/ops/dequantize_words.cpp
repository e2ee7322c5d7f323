#include "ops/dequantize_words.hpp"

#include "base/fail.hpp"
#include "base/integers.hpp"
#include "ops/checks.hpp"

namespace opfuse {

OpSpec DequantizeWords::spec() {
  return {.name = "dequantize_words",
          .inputs = {{"words"}, {"scale"}, optional_port("zero")},
          .outputs = {{"y"}},
          .kind = OpKind::elementwise,
          .flops_per_element = 2,
          .doc = "Weights behind packed codes, with a scale for each block of rows."};
}

std::vector<TensorType> DequantizeWords::infer(const Attrs& a, const Inference& in) {
  if (a.bits != 2 && a.bits != 4 && a.bits != 8) throw fail(E::bad_attribute, "bits is {}", a.bits);
  if (a.depth <= 0 || a.block_size <= 0 || a.block_size % a.unit() != 0)
    throw fail(E::bad_attribute, "depth is {}, block_size is {}", a.depth, a.block_size);
  if (in.dtype(0) != DType::i32)
    throw fail(E::unsupported_dtype, "words are {}; i32 is expected", name_of(in.dtype(0)));
  require_float(in, 1);
  if (in.has(2) && in.dtype(2) != DType::u8)
    throw fail(E::unsupported_dtype, "zero points are {}; u8 is expected", name_of(in.dtype(2)));
  in.require_rank(0, 2);
  const Dim columns = in.shape(0)[1];
  const Shape scales{Dim(ceil_of(a.depth, a.block_size)), columns};
  const bool agree = in.shape(0)[0] == Dim(ceil_of(a.depth, a.unit())) && in.shape(1) == scales &&
                     (!in.has(2) || in.shape(2) == scales);
  if (!agree)
    throw fail(E::shape_mismatch, "words {} and scales {} are not those of {} rows", in.shape(0).text(),
               in.shape(1).text(), a.depth);
  return {{DType::f32, Shape{Dim(a.depth), columns}}};
}

std::vector<Tensor> DequantizeWords::reference(const Attrs& a, Tensors in, Precision precision) {
  const Tensor& words = *in[0];
  const Reals scale(*in[1]);
  const Tensor* zero = in.size() > 2 ? in[2] : nullptr;
  const int64_t columns = words.dim(1), mask = (int64_t{1} << a.bits) - 1;
  Tensor y(DType::f64, {a.depth, columns});
  double* out = reals(y);
  for (int64_t k = 0; k < a.depth; ++k)
    for (int64_t n = 0; n < columns; ++n) {
      const int64_t word = words.integer(k / a.unit() * columns + n), p = k / a.block_size * columns + n;
      const int64_t code = word >> (a.bits * (k % a.unit())) & mask;
      out[k * columns + n] = static_cast<double>(code - (zero ? zero->integer(p) : a.zero)) * scale[p];
    }
  const bool exact = precision == Precision::exact && in[1]->dtype() == DType::f64;
  return {rounded(std::move(y), exact ? DType::f64 : DType::f32)};
}

}  // namespace opfuse
