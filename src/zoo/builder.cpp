// Names follow torch.onnx.export (TorchScript exporter, 1.13 and later): a node's scope is the path of its module,
// where the n-th child of a Sequential called "layer1" is "layer1.n"; a result is the node's name + "_output_0".
#include "zoo/builder.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/fail.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

std::vector<int64_t> both(int64_t n) { return {n, n}; }
std::vector<int64_t> around(int64_t n) { return {n, n, n, n}; }

/// "layer1.0.conv1" -> "/layer1/layer1.0/conv1"
std::string scope_path(const std::string& module) {
  std::string path, part, before;
  const auto flush = [&] {
    if (part.empty()) return;
    const bool number = std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
    before = number && !before.empty() ? before + "." + part : part;
    path += "/" + before;
    part.clear();
  };
  for (char c : module) {
    if (c == '.')
      flush();
    else
      part.push_back(c);
  }
  flush();
  return path;
}

}  // namespace

Builder::Builder(std::string_view model, const ZooOptions& options) : options_(options), weights_(options.seed) {
  if (!(options.width > 0 && options.width <= 8))
    throw fail(E::bad_option, "width {} is not between 0 and 8", options.width);
  if (options.opset != 13 && options.opset != 17)
    throw fail(E::bad_option, "opset {} is not one of those that models are spelled in: 13 and 17", options.opset);
  graph_.name = std::string(model);
}

Value* Builder::input(int64_t channels, int64_t own_resolution) {
  const int64_t size = options_.resolution > 0 ? options_.resolution : own_resolution;
  return graph_.add_input("input", {DType::f32, Shape{options_.batch, channels, size, size}});
}

int64_t Builder::divisible(double channels) {
  const int64_t rounded = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

int64_t Builder::channels(int64_t full) const {
  return options_.width == 1.0 ? full : divisible(static_cast<double>(full) * options_.width);
}

std::string Builder::scope(const std::string& module) {
  const std::string path = scope_path(module);
  if (path.empty()) return path;
  std::string unique = path;
  for (int n = 1; !used_.insert(unique).second; ++n) unique = fmt::format("{}_{}", path, n);
  return unique;
}

Value* Builder::append(const char* name, const char* onnx, std::vector<Value*> inputs, const std::string& module,
                       const AttrMap& attrs) {
  return at(scope(module), name, onnx, std::move(inputs), attrs);
}

Value* Builder::at(const std::string& path, const char* name, const char* onnx, std::vector<Value*> inputs,
                   const AttrMap& attrs) {
  std::string node_name = path + "/" + onnx;
  for (int n = 1; !used_.insert(node_name).second; ++n) node_name = fmt::format("{}/{}_{}", path, onnx, n);
  Node* node = graph_.add_node(op_named(name), attrs, std::move(inputs), 1, {{node_name, onnx, "", options_.opset}});
  node->output()->name = node_name + "_output_0";
  return node->output();
}

Value* Builder::op(const char* name, const char* onnx, std::vector<Value*> inputs, const std::string& module,
                   const AttrMap& attrs) {
  return append(name, onnx, std::move(inputs), module, attrs);
}

Value* Builder::conv(Value* x, const std::string& module, const ConvShape& c) {
  const int64_t pad = c.pad >= 0 ? c.pad : (c.kernel - 1) / 2 * c.dilation;
  const std::string weight = module + ".weight", bias = module + ".bias";
  std::vector<Value*> inputs = {
      x, parameter(weight, weights_.filter(weight, {c.out, channels_of(x) / c.group, c.kernel, c.kernel}, c.gain))};
  if (c.bias) inputs.push_back(parameter(bias, weights_.uniform(bias, {c.out}, -0.1, 0.1)));
  return append("conv", "Conv", std::move(inputs), module,
                {{"dilations", both(c.dilation)},
                 {"group", c.group},
                 {"kernel_shape", both(c.kernel)},
                 {"pads", around(pad)},
                 {"strides", both(c.stride)}});
}

Value* Builder::batch_norm(Value* x, const std::string& module, double gamma, double epsilon) {
  const std::vector<int64_t> sizes = {channels_of(x)};
  const auto draw = [&](const char* part, double low, double high) {
    const std::string name = module + "." + part;
    return parameter(name, weights_.uniform(name, sizes, low, high));
  };
  std::vector<Value*> inputs = {x, draw("weight", 0.8 * gamma, 1.2 * gamma), draw("bias", -0.1, 0.1),
                                draw("running_mean", -0.1, 0.1), draw("running_var", 0.5, 1.0)};
  return append("batch_norm", "BatchNormalization", std::move(inputs), module, {{"epsilon", epsilon}});
}

Value* Builder::linear(Value* x, const std::string& module, int64_t out, double gain) {
  return linear_at(scope(module), x, module, out, gain);
}

Value* Builder::linear_at(const std::string& path, Value* x, const std::string& module, int64_t out, double gain) {
  const int64_t in = x->type.shape[1].value();
  const std::string weight = module + ".weight", bias = module + ".bias";
  std::vector<Value*> inputs = {x, parameter(weight, weights_.filter(weight, {out, in}, gain)),
                                parameter(bias, weights_.uniform(bias, {out}, -0.05, 0.05))};
  return at(path, "gemm", "Gemm", std::move(inputs), {{"transB", true}});
}

Value* Builder::upsample(Value* x, const std::string& module) {
  const std::string name = scope_path(module) + "/Constant_output_0";
  Tensor scales(DType::f32, {4});
  for (int64_t i = 0; i < 4; ++i) scales.set_real(i, i < 2 ? 1 : 2);
  return op("resize", "Resize", {x, nullptr, parameter(name, std::move(scales))}, module,
            {{"coordinate_transformation_mode", std::string("asymmetric")},
             {"mode", std::string("nearest")},
             {"nearest_mode", std::string("floor")}});
}

Value* Builder::clip(Value* x, const std::string& module, double low, double high) {
  const std::string path = scope_path(module);
  return op("clip", "Clip",
            {x, parameter(path + "/Constant_output_0", Tensor::scalar(DType::f32, low)),
             parameter(path + "/Constant_1_output_0", Tensor::scalar(DType::f32, high))},
            module);
}

Value* Builder::max_pool(Value* x, const std::string& module, int64_t kernel, int64_t stride, int64_t pad) {
  return op("max_pool", "MaxPool", {x}, module,
            {{"ceil_mode", false}, {"kernel_shape", both(kernel)}, {"pads", around(pad)}, {"strides", both(stride)}});
}

Value* Builder::average_pool(Value* x, const std::string& module, int64_t kernel) {
  return op("average_pool", "AveragePool", {x}, module, {{"kernel_shape", both(kernel)}, {"strides", both(kernel)}});
}

Value* Builder::global_average_pool(Value* x, const std::string& module) {
  return op("global_average_pool", "GlobalAveragePool", {x}, module);
}

Graph Builder::finish(Value* output) { return finish({{"output", output}}); }

Graph Builder::finish(const std::vector<std::pair<std::string, Value*>>& outputs) {
  std::vector<Value*> values;
  for (const auto& [name, value] : outputs) {
    value->name = name;
    values.push_back(value);
  }
  graph_.set_outputs(values);
  return std::move(graph_);
}

}  // namespace opfuse
