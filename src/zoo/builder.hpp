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

  /// Channels under the width option: a multiple of 8, and not less than 90 % of channels * width.
  int64_t channels(int64_t full) const;
  static int64_t divisible(double channels);  ///< torchvision's rounding to multiples of 8
  int64_t classes(int64_t own) const { return options_.classes > 0 ? options_.classes : own; }
  static int64_t channels_of(const Value* x) { return x->type.shape[1].value(); }

 private:
  Value* parameter(const std::string& name, Tensor tensor) { return graph_.add_constant(std::move(tensor), name); }
  Value* append(const char* name, const char* onnx, std::vector<Value*> inputs, const std::string& module,
                const AttrMap& attrs);
  std::string scope(const std::string& module);

  ZooOptions options_;
  Weights weights_;
  Graph graph_;
  std::set<std::string> used_;
};

}  // namespace opfuse
