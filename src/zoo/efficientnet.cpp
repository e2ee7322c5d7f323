// torchvision's EfficientNet-B0: MBConv blocks with SiLU and squeeze-excitation. PyTorch exports SiLU as Sigmoid and
// Mul.
//
//   x -- [conv1x1 -- bn -- silu] -- depthwise/stride -- bn -- silu -- se -- conv1x1 -- bn -- [+ x]
//   se:  sigmoid(conv1x1(silu(conv1x1(mean(y))))) * y         squeezed to a quarter of the block's input channels
#include <algorithm>
#include <string>

#include "base/fail.hpp"
#include "zoo/builder.hpp"
#include "zoo/models.hpp"

namespace opfuse {
namespace {

struct Stage {
  int64_t expand, kernel, stride, out, count;
};

constexpr Stage kStages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                             {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};

Value* silu(Builder& b, Value* x, const std::string& path) {
  return b.op("mul", "Mul", {x, b.op("sigmoid", "Sigmoid", {x}, path)}, path);
}

Value* conv_bn_silu(Builder& b, Value* x, const std::string& path, const ConvShape& shape) {
  return silu(b, b.batch_norm(b.conv(x, path + ".0", shape), path + ".1"), path + ".2");
}

Value* squeeze_excitation(Builder& b, Value* x, const std::string& path, int64_t squeezed) {
  Value* s = b.global_average_pool(x, path + ".avgpool");
  s = silu(b, b.conv(s, path + ".fc1", {.out = squeezed, .bias = true}), path + ".activation");
  s = b.conv(s, path + ".fc2", {.out = Builder::channels_of(x), .bias = true});
  return b.op("mul", "Mul", {b.op("sigmoid", "Sigmoid", {s}, path + ".scale_activation"), x}, path);
}

Value* block(Builder& b, Value* x, const std::string& path, const Stage& s, int64_t out, int64_t stride) {
  const int64_t in = Builder::channels_of(x), expanded = Builder::divisible(static_cast<double>(in * s.expand));
  const bool residual = stride == 1 && in == out;
  int child = 0;
  const auto next = [&] { return fmt::format("{}.block.{}", path, child++); };
  Value* y = x;
  if (expanded != in) y = conv_bn_silu(b, y, next(), {.out = expanded});
  y = conv_bn_silu(b, y, next(), {.out = expanded, .kernel = s.kernel, .stride = stride, .group = expanded});
  y = squeeze_excitation(b, y, next(), std::max<int64_t>(1, in / 4));
  const std::string last = next();
  y = b.batch_norm(b.conv(y, last + ".0", {.out = out}), last + ".1", residual ? 0.6 : 1.6);
  return residual ? b.add(y, x, path) : y;
}

}  // namespace

Graph build_efficientnet_b0(const ZooOptions& options) {
  Builder b("efficientnet_b0", options);
  Value* x = conv_bn_silu(b, b.input(3, 224), "features.0", {.out = b.channels(32), .kernel = 3, .stride = 2});
  int index = 1;
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.count; ++i)
      x = block(b, x, fmt::format("features.{}.{}", index, i), stage, b.channels(stage.out), i == 0 ? stage.stride : 1);
    ++index;
  }
  x = conv_bn_silu(b, x, fmt::format("features.{}", index), {.out = 4 * Builder::channels_of(x)});
  x = b.flatten(b.global_average_pool(x, "avgpool"));
  return b.finish(b.linear(x, "classifier.1", b.classes(1000)));
}

}  // namespace opfuse
