// Linear quantisation. Typed precision divides in the operand's own element type, as engines do: x / scale in single
// precision may be a tie where the exact quotient is not.
#include "ops/quantize.hpp"

#include <cmath>

#include "base/fail.hpp"
#include "ops/checks.hpp"
#include "tensor/dim_rule.hpp"

namespace opfuse {
namespace {

/// Checks scale and zero point (operands 1 and 2) against x.
void check_parameters(int64_t attr_axis, int64_t block_size, const Inference& in) {
  if (block_size != 0)
    throw fail(E::unsupported_attribute, "block_size = {}: blocked quantisation is not supported", block_size);
  require_float(in, 1);
  const Shape &x = in.shape(0), &scale = in.shape(1);
  const bool one = scale.rank() == 0 || (scale.rank() == 1 && scale[0] == Dim(1));
  if (!one) {
    in.require_rank(1, 1);
    const size_t axis = normalize_axis(attr_axis, x.rank());
    if (!may_equal(scale[0], x[axis]))
      throw fail(E::shape_mismatch, "scale has {} values, axis {} has {} elements", scale[0].text(), axis,
                 x[axis].text());
    assume(DimRule::equal, scale[0], x[axis], fmt::format("scale has a value for each element of axis {}", axis));
  }
  if (!in.has(2)) return;
  if (!(in.shape(2).elements() == scale.elements()) && in.shape(2).is_static() && scale.is_static())
    throw fail(E::shape_mismatch, "scale has shape {}, zero_point {}", scale.text(), in.shape(2).text());
  assume(DimRule::equal, in.shape(2).elements(), scale.elements(), "zero_point has as many values as scale");
}

/// Which parameter belongs to element i.
struct Parameter {
  int64_t inner = 1, count = 1;
  Parameter(int64_t attr_axis, const Tensor& x, const Tensor& scale) {
    count = scale.elements();
    if (count == 1) return;
    const size_t axis = normalize_axis(attr_axis, x.rank());
    inner = product(x.sizes(), axis + 1, x.rank());
  }
  int64_t operator()(int64_t i) const { return count == 1 ? 0 : i / inner % count; }
};

}  // namespace

OpSpec QuantizeLinear::spec() {
  return {.name = "quantize_linear",
          .inputs = {{"x"}, {"scale"}, optional_port("zero_point")},
          .outputs = {{"y"}},
          .kind = OpKind::elementwise,
          .flops_per_element = 3,
          .doc = "Rounds to a scale and saturates to an integer type."};
}

std::vector<TensorType> QuantizeLinear::infer(const Attrs& a, const Inference& in) {
  const DType to = in.has(2) ? in.dtype(2) : a.output_dtype != DType::unknown ? a.output_dtype : DType::u8;
  if (a.output_dtype != DType::unknown && a.output_dtype != to)
    throw fail(E::dtype_mismatch, "output_dtype is {}, zero_point is {}", name_of(a.output_dtype), name_of(to));
  if (to != DType::i8 && to != DType::u8 && to != DType::i16 && to != DType::u16)
    throw fail(E::unsupported_dtype, "quantisation to {} is not supported", name_of(to));
  if (!is_float(in.dtype(0)) && in.dtype(0) != DType::i32)
    throw fail(E::unsupported_dtype, "operand 0 is {}; a floating-point type or i32 is expected", name_of(in.dtype(0)));
  if (has_unranked(in)) return unranked(in, to);
  check_parameters(a.axis, a.block_size, in);
  return {{to, in.shape(0)}};
}

std::vector<Tensor> QuantizeLinear::reference(const Attrs& a, Tensors in, Precision precision) {
  const Reals x(*in[0]), scale(*in[1]);
  const Tensor* zero = in.size() > 2 ? in[2] : nullptr;
  const DType to = zero ? zero->dtype() : a.output_dtype != DType::unknown ? a.output_dtype : DType::u8;
  const Parameter parameter(a.axis, *in[0], *in[1]);
  const bool single = precision == Precision::typed && in[0]->dtype() != DType::f64;
  Tensor y(to, in[0]->sizes());
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t p = parameter(i);
    double q = x[i] / scale[p];
    if (single) q = static_cast<double>(static_cast<float>(q));
    y.set_real(i, std::nearbyint(q) + (zero ? static_cast<double>(zero->integer(p)) : 0.0));
  }
  return {y};
}

OpSpec DequantizeLinear::spec() {
  return {.name = "dequantize_linear",
          .inputs = {{"x"}, {"scale"}, optional_port("zero_point")},
          .outputs = {{"y"}},
          .kind = OpKind::elementwise,
          .flops_per_element = 2,
          .doc = "Integers back to real numbers."};
}

std::vector<TensorType> DequantizeLinear::infer(const Attrs& a, const Inference& in) {
  require_integer(in, 0);
  require_same_dtype(in, 0, 2);
  if (has_unranked(in)) return unranked(in, in.dtype(1));
  check_parameters(a.axis, a.block_size, in);
  return {{in.dtype(1), in.shape(0)}};
}

std::vector<Tensor> DequantizeLinear::reference(const Attrs& a, Tensors in, Precision) {
  const Tensor& x = *in[0];
  const Reals scale(*in[1]);
  const Tensor* zero = in.size() > 2 ? in[2] : nullptr;
  const Parameter parameter(a.axis, x, *in[1]);
  Tensor y(DType::f64, x.sizes());
  double* out = reals(y);
  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t p = parameter(i);
    out[i] = static_cast<double>(x.integer(i) - (zero ? zero->integer(p) : 0)) * scale[p];
  }
  return {rounded(std::move(y), in[1]->dtype())};
}

}  // namespace opfuse
