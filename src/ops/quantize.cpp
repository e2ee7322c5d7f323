// Linear quantisation. Typed precision divides in the operand's own element type, as engines do: x / scale in single
// precision may be a tie where the exact quotient is not.
#include "ops/quantize.hpp"

#include <cmath>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "tensor/dim_rule.hpp"
#include "tensor/small_float.hpp"

namespace opfuse {
namespace {

/// One scale for each block of `axis`: scale has x's shape, but for that axis.
void check_blocks(int64_t attr_axis, int64_t block_size, const Shape& x, const Shape& scale) {
  if (block_size < 0) throw fail(E::bad_attribute, "block_size is {}", block_size);
  if (scale.rank() != x.rank())
    throw fail(E::rank_mismatch, "scale has shape {}; of blocks it has the rank of x, {}", scale.text(), x.text());
  const size_t axis = normalize_axis(attr_axis, x.rank());
  for (size_t d = 0; d < x.rank(); ++d) {
    const Dim wanted = d == axis ? ceil_div(x[d], Dim(block_size)) : x[d];
    if (!may_equal(scale[d], wanted))
      throw fail(E::shape_mismatch, "scale has shape {}, blocks of {} along axis {} of {} need {} at {}", scale.text(),
                 block_size, axis, x.text(), wanted.text(), d);
    assume(DimRule::equal, scale[d], wanted, fmt::format("scale has a value for each block of axis {}", axis));
  }
}

void check_axis(int64_t attr_axis, const Inference& in) {
  const Shape &x = in.shape(0), &scale = in.shape(1);
  const bool one = scale.rank() == 0 || (scale.rank() == 1 && scale[0] == Dim(1));
  if (one) return;
  in.require_rank(1, 1);
  const size_t axis = normalize_axis(attr_axis, x.rank());
  if (!may_equal(scale[0], x[axis]))
    throw fail(E::shape_mismatch, "scale has {} values, axis {} has {} elements", scale[0].text(), axis,
               x[axis].text());
  assume(DimRule::equal, scale[0], x[axis], fmt::format("scale has a value for each element of axis {}", axis));
}

/// Checks scale and zero point (operands 1 and 2) against x.
void check_parameters(int64_t axis, int64_t block_size, const Inference& in) {
  require_float(in, 1);
  const Shape& scale = in.shape(1);
  if (block_size != 0)
    check_blocks(axis, block_size, in.shape(0), scale);
  else
    check_axis(axis, in);
  if (!in.has(2)) return;
  if (!(in.shape(2).elements() == scale.elements()) && in.shape(2).is_static() && scale.is_static())
    throw fail(E::shape_mismatch, "scale has shape {}, zero_point {}", scale.text(), in.shape(2).text());
  assume(DimRule::equal, in.shape(2).elements(), scale.elements(), "zero_point has as many values as scale");
}

/// Which parameter belongs to element i.
class Parameter {
 public:
  Parameter(int64_t attr_axis, int64_t block_size, const Tensor& x, const Tensor& scale) : block_(block_size) {
    count_ = scale.elements();
    if (count_ == 1 && block_ == 0) return;
    const size_t axis = normalize_axis(attr_axis, x.rank());
    inner_ = product(x.sizes(), axis + 1, x.rank());
    extent_ = x.dim(axis);
  }
  int64_t operator()(int64_t i) const {
    if (block_ == 0) return count_ == 1 ? 0 : i / inner_ % count_;
    const int64_t blocks = (extent_ + block_ - 1) / block_;
    return (i / (inner_ * extent_) * blocks + i / inner_ % extent_ / block_) * inner_ + i % inner_;
  }

 private:
  int64_t block_, inner_ = 1, count_ = 1, extent_ = 1;
};

bool quantises_to(DType to) {
  if (is_integer(to)) return bit_size(to) <= 16;
  return is_float(to) && byte_size(to) == 1 && to != DType::f8e8m0;
}

}  // namespace

DType quantised_dtype(const QuantizeLinear::Attrs& a, DType zero_point) {
  if (zero_point != DType::unknown) return zero_point;
  return a.output_dtype != DType::unknown ? a.output_dtype : DType::u8;
}

OpSpec QuantizeLinear::spec() {
  return {.name = "quantize_linear",
          .inputs = {{"x"}, {"scale"}, optional_port("zero_point")},
          .outputs = {{"y"}},
          .kind = OpKind::elementwise,
          .flops_per_element = 3,
          .doc = "Rounds to a scale and saturates to an integer type or a float of a byte."};
}

std::vector<TensorType> QuantizeLinear::infer(const Attrs& a, const Inference& in) {
  const DType to = quantised_dtype(a, in.has(2) ? in.dtype(2) : DType::unknown);
  if (a.output_dtype != DType::unknown && a.output_dtype != to)
    throw fail(E::dtype_mismatch, "output_dtype is {}, zero_point is {}", name_of(a.output_dtype), name_of(to));
  if (!quantises_to(to)) throw fail(E::unsupported_dtype, "quantisation to {} is not supported", name_of(to));
  if (!is_float(in.dtype(0)) && in.dtype(0) != DType::i32)
    throw fail(E::unsupported_dtype, "operand 0 is {}; a floating-point type or i32 is expected", name_of(in.dtype(0)));
  if (has_unranked(in)) return unranked(in, to);
  check_parameters(a.axis, a.block_size, in);
  return {{to, in.shape(0)}};
}

std::vector<Tensor> QuantizeLinear::reference(const Attrs& a, Tensors in, Precision precision) {
  const Reals x(*in[0]), scale(*in[1]);
  const Tensor* zero = in.size() > 2 ? in[2] : nullptr;
  // In exact precision the zero point of a float is f64; the attribute says what is stored. Casts do not round then.
  const DType given = a.output_dtype == DType::unknown && zero ? zero->dtype() : DType::unknown;
  const DType to = quantised_dtype(a, given);
  const Parameter parameter(a.axis, a.block_size, *in[0], *in[1]);
  const bool single = precision == Precision::typed && in[0]->dtype() != DType::f64;
  const double most = is_float(to) && a.saturate ? greatest_of(to) : HUGE_VAL;
  Tensor y(precision == Precision::exact && is_float(to) ? DType::f64 : to, in[0]->sizes());
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t p = parameter(i);
    double q = x[i] / scale[p];
    if (single) q = static_cast<double>(static_cast<float>(q));
    if (!is_float(to)) q = std::nearbyint(q);
    q += zero ? zero->real(p) : 0.0;
    y.set_real(i, q > most ? most : q < -most ? -most : q);
  }
  return {y};
}

OpSpec DequantizeLinear::spec() {
  return {.name = "dequantize_linear",
          .inputs = {{"x"}, {"scale"}, optional_port("zero_point")},
          .outputs = {{"y"}},
          .kind = OpKind::elementwise,
          .flops_per_element = 2,
          .doc = "Quantised values back to real numbers."};
}

std::vector<TensorType> DequantizeLinear::infer(const Attrs& a, const Inference& in) {
  if (!quantises_to(in.dtype(0)) && in.dtype(0) != DType::i32) require_integer(in, 0);
  require_same_dtype(in, 0, 2);
  const DType to = a.output_dtype != DType::unknown ? a.output_dtype : in.dtype(1);
  if (!is_float(to)) throw fail(E::unsupported_dtype, "output_dtype is {}", name_of(to));
  if (has_unranked(in)) return unranked(in, to);
  check_parameters(a.axis, a.block_size, in);
  return {{to, in.shape(0)}};
}

std::vector<Tensor> DequantizeLinear::reference(const Attrs& a, Tensors in, Precision precision) {
  const Tensor& x = *in[0];
  const Reals scale(*in[1]);
  const Tensor* zero = in.size() > 2 ? in[2] : nullptr;
  const Parameter parameter(a.axis, a.block_size, x, *in[1]);
  const DType to = a.output_dtype == DType::unknown || precision == Precision::exact ? in[1]->dtype() : a.output_dtype;
  Tensor y(DType::f64, x.sizes());
  double* out = reals(y);
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t p = parameter(i);
    out[i] = (x.real(i) - (zero ? zero->real(p) : 0.0)) * scale[p];
  }
  return {rounded(std::move(y), to)};
}

}  // namespace opfuse
