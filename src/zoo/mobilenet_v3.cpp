// torchvision's MobileNetV3-Large: inverted residuals with squeeze-excitation.
//
//   x -- [conv1x1 -- bn -- act] -- depthwise/stride -- bn -- act -- [se] -- conv1x1 -- bn -- [+ x]      act: ReLU,
//   HardSwish se:  y * hardsigmoid(conv1x1(relu(conv1x1(mean(y)))))
#include <string>

#include "base/fail.hpp"
#include "zoo/builder.hpp"
#include "zoo/models.hpp"

namespace opfuse {
namespace {

constexpr double kEpsilon = 0.001;

struct Row {
  int64_t kernel, expanded, out;
  bool squeeze, hard_swish;
  int64_t stride;
};

constexpr Row kRows[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1},
};

/// Conv2dNormActivation.
Value* conv_bn_act(Builder& b, Value* x, const std::string& path, const ConvShape& shape, bool hard_swish) {
  x = b.batch_norm(b.conv(x, path + ".0", shape), path + ".1", 1.0, kEpsilon);
  return hard_swish ? b.op("hard_swish", "HardSwish", {x}, path + ".2") : b.relu(x, path + ".2");
}

Value* squeeze_excitation(Builder& b, Value* x, const std::string& path) {
  const int64_t channels = Builder::channels_of(x);
  Value* s = b.global_average_pool(x, path + ".avgpool");
  s = b.conv(s, path + ".fc1", {.out = Builder::divisible(static_cast<double>(channels) / 4), .bias = true});
  s = b.conv(b.relu(s, path + ".activation"), path + ".fc2", {.out = channels, .bias = true});
  s = b.op("hard_sigmoid", "HardSigmoid", {s}, path + ".scale_activation", {{"alpha", 0.16666667}});
  return b.op("mul", "Mul", {s, x}, path);
}

Value* block(Builder& b, Value* x, const std::string& path, const Row& row) {
  const int64_t in = Builder::channels_of(x), out = b.channels(row.out), expanded = b.channels(row.expanded);
  const bool residual = row.stride == 1 && in == out;
  int child = 0;
  const auto next = [&] { return fmt::format("{}.block.{}", path, child++); };
  Value* y = x;
  if (expanded != in) y = conv_bn_act(b, y, next(), {.out = expanded}, row.hard_swish);
  y = conv_bn_act(b, y, next(), {.out = expanded, .kernel = row.kernel, .stride = row.stride, .group = expanded},
                  row.hard_swish);
  if (row.squeeze) y = squeeze_excitation(b, y, next());
  const std::string last = next();
  y = b.batch_norm(b.conv(y, last + ".0", {.out = out}), last + ".1", residual ? 0.5 : 1.2, kEpsilon);
  return residual ? b.add(y, x, path) : y;
}

}  // namespace

Graph build_mobilenet_v3_large(const ZooOptions& options) {
  Builder b("mobilenet_v3_large", options);
  Value* x = conv_bn_act(b, b.input(3, 224), "features.0", {.out = b.channels(16), .kernel = 3, .stride = 2}, true);
  int index = 1;
  for (const Row& row : kRows) x = block(b, x, fmt::format("features.{}", index++), row);
  x = conv_bn_act(b, x, fmt::format("features.{}", index), {.out = 6 * Builder::channels_of(x)}, true);
  x = b.flatten(b.global_average_pool(x, "avgpool"));
  x = b.linear(x, "classifier.0", b.channels(1280), 2.0);
  x = b.op("hard_swish", "HardSwish", {x}, "classifier.1");
  return b.finish(b.linear(x, "classifier.3", b.classes(1000)));
}

}  // namespace opfuse
