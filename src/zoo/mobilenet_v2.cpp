// torchvision's MobileNetV2: inverted residuals.
//
//   x -- [conv1x1 expand -- bn -- relu6] -- depthwise3x3/stride -- bn -- relu6 -- conv1x1 -- bn -- [+ x]
#include <algorithm>
#include <string>

#include "base/fail.hpp"
#include "zoo/builder.hpp"
#include "zoo/models.hpp"

namespace opfuse {
namespace {

/// Conv2dNormActivation: conv, bn and ReLU6 as children 0, 1, 2 of `path`.
Value* conv_bn_relu6(Builder& b, Value* x, const std::string& path, const ConvShape& shape) {
  x = b.batch_norm(b.conv(x, path + ".0", shape), path + ".1");
  return b.clip(x, path + ".2", 0, 6);
}

Value* inverted_residual(Builder& b, Value* x, const std::string& path, int64_t expand, int64_t out, int64_t stride) {
  const int64_t in = Builder::channels_of(x), hidden = in * expand;
  const bool residual = stride == 1 && in == out;
  int child = 0;
  Value* y = x;
  if (expand != 1) y = conv_bn_relu6(b, y, fmt::format("{}.conv.{}", path, child++), {.out = hidden});
  y = conv_bn_relu6(b, y, fmt::format("{}.conv.{}", path, child++),
                    {.out = hidden, .kernel = 3, .stride = stride, .group = hidden});
  y = b.conv(y, fmt::format("{}.conv.{}", path, child), {.out = out});
  y = b.batch_norm(y, fmt::format("{}.conv.{}", path, child + 1), residual ? 0.5 : 1.0);
  return residual ? b.add(x, y, path) : y;
}

}  // namespace

Graph build_mobilenet_v2(const ZooOptions& options) {
  struct Stage {
    int64_t expand, channels, count, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  Builder b("mobilenet_v2", options);
  Value* x = conv_bn_relu6(b, b.input(3, 224), "features.0", {.out = b.channels(32), .kernel = 3, .stride = 2});
  int index = 1;
  for (const Stage& s : kStages)
    for (int64_t i = 0; i < s.count; ++i)
      x = inverted_residual(b, x, fmt::format("features.{}", index++), s.expand, b.channels(s.channels),
                            i == 0 ? s.stride : 1);
  x = conv_bn_relu6(b, x, fmt::format("features.{}", index), {.out = b.channels(1280)});
  x = b.flatten(b.global_average_pool(x, ""));
  return b.finish(b.linear(x, "classifier.1", b.classes(1000)));
}

}  // namespace opfuse
