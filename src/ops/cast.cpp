// Casts of whole tensors, where going through the law element by element would be slow.
#include "ops/cast.hpp"

#include "ops/cast_like.hpp"

namespace opfuse {

Tensor cast_tensor(const Tensor& x, DType to, Precision precision) {
  return x.cast(precision == Precision::exact && is_float(to) ? DType::f64 : to);
}

std::vector<Tensor> Cast::reference(const Attrs& attrs, Tensors in, Precision precision) {
  return {cast_tensor(*in[0], attrs.to, precision)};
}

/// Of a size as a real number too: ends of ranges are (ir/dim_values.cpp). Not of types that lack most of the numbers
/// that sizes are.
std::optional<std::vector<Dim>> Cast::dims(const Attrs& attrs, const Inference& in) {
  const bool real = attrs.to == DType::f32 || attrs.to == DType::f64;
  const bool whole = attrs.to == DType::i32 || attrs.to == DType::i64;
  if (!(real || whole) || in.shape(0).rank() > 1) return std::nullopt;
  return in.dims(0);
}

std::vector<TensorType> CastLike::infer(const Attrs&, const Inference& in) { return {{in.dtype(1), in.shape(0)}}; }

std::vector<Tensor> CastLike::reference(const Attrs&, Tensors in, Precision precision) {
  return {cast_tensor(*in[0], in[1]->dtype(), precision)};
}

}  // namespace opfuse
