// Operators of ai.onnx.ml that are arithmetic on tensors.
//   ArrayFeatureExtractor    columns of x by number, a row of them where x is a vector
//   Binarizer                1 where x > threshold, else 0
//   Scaler                   (x - offset) * scale, in f32
#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

}  // namespace

Results import_array_feature_extractor(NodeImport& n) {
  n.require_inputs(2, 2);
  Speller s(n);
  Value *x = n.required(0), *columns = s.reshape(n.required(1), {-1});
  if (!x->type.shape.ranked || x->type.shape.rank() == 0)
    throw fail(E::unsupported_op, "x is {}; one or more dimensions are expected", x->type.text());
  if (x->type.shape.rank() == 1) x = s.unsqueeze(x, 0);
  return {s.op("gather", {x, columns}, {{"axis", static_cast<int64_t>(x->type.shape.rank()) - 1}})};
}

Results import_binarizer(NodeImport& n) {
  n.require_inputs(1, 1);
  Speller s(n);
  Value* x = n.required(0);
  const DType dtype = x->type.dtype;
  // No integer lies between a fraction and the whole number below it.
  Value* wide = is_float(dtype) ? x : s.cast(x, DType::f64);
  Value* above = s.op("greater", {wide, s.number(n.real("threshold", 0), wide->type.dtype)});
  return {s.cast(above, dtype)};
}

Results import_scaler(NodeImport& n) {
  n.require_inputs(1, 1);
  Speller s(n);
  Value* x = s.cast(n.required(0), DType::f32);
  const auto row = [&](const std::vector<double>& values) {
    return n.constant(Tensor::of(DType::f32, {static_cast<int64_t>(values.size())}, values));
  };
  if (const auto offset = n.reals("offset")) x = s.op("sub", {x, row(*offset)});
  if (const auto scale = n.reals("scale")) x = s.op("mul", {x, row(*scale)});
  return {x};
}

}  // namespace opfuse::onnx
