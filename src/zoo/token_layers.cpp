// Layers on tokens as PyTorch's exporter writes them. A module of several operators has one scope; their constants are
// called "Constant", "Constant_1", ... in it.
#include <fmt/core.h>

#include <cmath>

#include "zoo/builder.hpp"

namespace opfuse {

static int64_t last_dim(const Value* x) { return x->type.shape[x->type.shape.rank() - 1].value(); }

Value* Builder::number(const std::string& path, double value) {
  std::string name = path + "/Constant";
  for (int n = 1; !used_.insert(name).second; ++n) name = fmt::format("{}/Constant_{}", path, n);
  return parameter(name + "_output_0", Tensor::scalar(DType::f32, value));
}

Value* Builder::integers(const std::string& path, const std::vector<int64_t>& values) {
  std::string name = path + "/Constant";
  for (int n = 1; !used_.insert(name).second; ++n) name = fmt::format("{}/Constant_{}", path, n);
  return parameter(name + "_output_0", Tensor::from_i64(values));
}

Value* Builder::reshape(const std::string& path, Value* x, const std::vector<int64_t>& sizes) {
  return at(path, "reshape", "Reshape", {x, integers(path, sizes)});
}

Value* Builder::transpose(const std::string& path, Value* x, const std::vector<int64_t>& perm) {
  return at(path, "transpose", "Transpose", {x}, {{"perm", perm}});
}

Value* Builder::slice(const std::string& path, Value* x, int64_t axis, int64_t from, int64_t to, int64_t step) {
  return at(path, "slice", "Slice",
            {x, integers(path, {from}), integers(path, {to}), integers(path, {axis}), integers(path, {step})});
}

Value* Builder::layer_norm(Value* x, const std::string& module, double epsilon) {
  return layer_norm_at(enter(module), x, module, epsilon);
}

Value* Builder::layer_norm_at(const std::string& path, Value* x, const std::string& module, double epsilon) {
  const int64_t size = last_dim(x);
  Value* scale = uniform(module + ".weight", {size}, 0.8, 1.2);
  Value* bias = uniform(module + ".bias", {size}, -0.1, 0.1);
  if (options_.opset >= 17)
    return at(path, "layer_norm", "LayerNormalization", {x, scale, bias},
              {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  const AttrMap last{{"axes", std::vector<int64_t>{-1}}};
  Value* d = at(path, "sub", "Sub", {x, at(path, "reduce_mean", "ReduceMean", {x}, last)});
  Value* square = at(path, "pow", "Pow", {d, number(path, 2)});
  Value* variance = at(path, "reduce_mean", "ReduceMean", {square}, last);
  Value* root = at(path, "sqrt", "Sqrt", {at(path, "add", "Add", {variance, number(path, epsilon)})});
  Value* normal = at(path, "div", "Div", {d, root});
  return at(path, "add", "Add", {at(path, "mul", "Mul", {normal, scale}), bias});
}

Value* Builder::gelu(Value* x, const std::string& module) {
  const std::string path = enter(module);
  Value* erf = at(path, "erf", "Erf", {at(path, "div", "Div", {x, number(path, std::sqrt(2.0))})});
  Value* phi = at(path, "add", "Add", {erf, number(path, 1)});
  return at(path, "mul", "Mul", {at(path, "mul", "Mul", {x, phi}), number(path, 0.5)});
}

Value* Builder::token_linear(Value* x, const std::string& module, int64_t out, double gain, bool bias) {
  return token_linear_at(enter(module), x, module, out, gain, bias);
}

Value* Builder::token_linear_at(const std::string& path, Value* x, const std::string& module, int64_t out, double gain,
                                bool bias) {
  const std::string weight = module + ".weight";
  const Tensor rows = weights_.filter(weight, {out, last_dim(x)}, gain);
  Tensor columns(DType::f32, {rows.dim(1), rows.dim(0)});  // the exporter stores what MatMul reads
  const auto from = rows.view<float>();
  const auto to = columns.mutable_view<float>();
  for (int64_t o = 0; o < rows.dim(0); ++o)
    for (int64_t i = 0; i < rows.dim(1); ++i)
      to[static_cast<size_t>(i * rows.dim(0) + o)] = from[static_cast<size_t>(o * rows.dim(1) + i)];
  Value* y = at(path, "matmul", "MatMul", {x, parameter(weight, std::move(columns))});
  return bias ? at(path, "add", "Add", {uniform(module + ".bias", {out}, -0.05, 0.05), y}) : y;
}

Value* Builder::token_input(const std::string& name, int64_t length) {
  return graph_.add_input(name, {DType::i64, Shape{options_.batch, length}});
}

}  // namespace opfuse
