// Writing down a torchvision model: modules by their Python path, nodes under the names the exporter derives from it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ir/graph.hpp"
#include "zoo/weights.hpp"
#include "zoo/zoo.hpp"

namespace opfuse {

struct ConvShape {
  int64_t out = 0, kernel = 1, stride = 1, group = 1, dilation = 1;
  bool bias = false;
  int64_t pad = -1;   ///< -1: (kernel - 1) / 2 * dilation
  double gain = 2.0;  ///< variance of the weights times fan-in; 2 keeps the scale through a ReLU
};

class Builder {
 public:
  Builder(std::string_view model, const ZooOptions& options);

  Value* input(int64_t channels, int64_t own_resolution);
  Graph finish(Value* output);

  // `module` is the Python path ("layer1.0.conv1"): parameters are "layer1.0.conv1.weight", nodes
  // "/layer1/layer1.0/conv1/Conv". A module called again gets "_1", "_2" behind its last part, as in PyTorch.
  Value* conv(Value* x, const std::string& module, const ConvShape& shape);
  /// `gamma`: centre of the scale's distribution; small at the end of a residual branch keeps the sum bounded.
  Value* batch_norm(Value* x, const std::string& module, double gamma = 1.0, double epsilon = 1e-5);
  Value* linear(Value* x, const std::string& module, int64_t out, double gain = 1.0);
  Value* upsample(Value* x, const std::string& module);  ///< nearest, twice the height and width
  /// An operator without parameters: op("relu", "Relu", {x}, "layer1.0.relu").
  Value* op(const char* name, const char* onnx, std::vector<Value*> inputs, const std::string& module,
            const AttrMap& attrs = {});

  Value* relu(Value* x, const std::string& module) { return op("relu", "Relu", {x}, module); }
  Value* clip(Value* x, const std::string& module, double low, double high);
  Value* add(Value* a, Value* b, const std::string& module) { return op("add", "Add", {a, b}, module); }
  Value* max_pool(Value* x, const std::string& module, int64_t kernel, int64_t stride, int64_t pad);
  Value* average_pool(Value* x, const std::string& module, int64_t kernel);  ///< stride = kernel
  Value* global_average_pool(Value* x, const std::string& module);
  Value* flatten(Value* x) { return op("flatten", "Flatten", {x}, "", {{"axis", int64_t{1}}}); }

  // Layers of models that work on tokens [batch, token, channel] (token_layers.cpp), spelled as `options.opset` needs.
  Value* layer_norm(Value* x, const std::string& module, double epsilon);  ///< over the last axis
  Value* layer_norm_at(const std::string& path, Value* x, const std::string& module, double epsilon);
  Value* gelu(Value* x, const std::string& module);  ///< x (1 + erf(x / sqrt 2)) / 2
  /// MatMul [-> Add] over the last axis.
  Value* token_linear(Value* x, const std::string& module, int64_t out, double gain = 1.0, bool bias = true);
  Value* token_linear_at(const std::string& path, Value* x, const std::string& module, int64_t out, double gain = 1.0,
                         bool bias = true);
  Value* linear_at(const std::string& path, Value* x, const std::string& module, int64_t out, double gain = 1.0);

  // Several operators of one module: at(enter(module), ...) names them "/module/Op", "/module/Op_1", ...
  std::string enter(const std::string& module) { return scope(module); }
  Value* at(const std::string& path, const char* name, const char* onnx, std::vector<Value*> inputs,
            const AttrMap& attrs = {});
  Value* reshape(const std::string& path, Value* x, const std::vector<int64_t>& sizes);
  Value* transpose(const std::string& path, Value* x, const std::vector<int64_t>& perm);
  Value* slice(const std::string& path, Value* x, int64_t axis, int64_t from, int64_t to, int64_t step = 1);
  Value* number(const std::string& path, double value);
  Value* integers(const std::string& path, const std::vector<int64_t>& values);
  Value* parameter(const std::string& name, Tensor tensor) { return graph_.add_constant(std::move(tensor), name); }
  Value* uniform(const std::string& name, const std::vector<int64_t>& sizes, double low, double high) {
    return parameter(name, weights_.uniform(name, sizes, low, high));
  }
  Value* token_input(const std::string& name, int64_t length);  ///< i64[batch, length]
  /// Several results with their names.
  Graph finish(const std::vector<std::pair<std::string, Value*>>& outputs);

  /// Channels under the width option: a multiple of 8, and not less than 90 % of channels * width.
  int64_t channels(int64_t full) const;
  static int64_t divisible(double channels);  ///< torchvision's rounding to multiples of 8
  int64_t classes(int64_t own) const { return options_.classes > 0 ? options_.classes : own; }
  const ZooOptions& options() const { return options_; }
  static int64_t channels_of(const Value* x) { return x->type.shape[1].value(); }

 private:
  Value* append(const char* name, const char* onnx, std::vector<Value*> inputs, const std::string& module,
                const AttrMap& attrs);
  std::string scope(const std::string& module);

  ZooOptions options_;
  Weights weights_;
  Graph graph_;
  std::set<std::string> used_;
};

}  // namespace opfuse
