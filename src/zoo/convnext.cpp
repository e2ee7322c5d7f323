// torchvision's ConvNeXt: 7x7 depthwise convolution, LayerNorm, Linear, GELU, Linear, a scale per channel, the sum.
// The MLP works on channels last, so every block has a permutation there and back.
#include <fmt/core.h>

#include "zoo/builder.hpp"
#include "zoo/models.hpp"

namespace opfuse {
namespace {

constexpr double kEpsilon = 1e-6;

struct Stage {
  int64_t channels, blocks;
};

Value* layer_norm_2d(Builder& b, Value* x, const std::string& module) {
  const std::string path = b.enter(module);
  Value* last = b.transpose(path, x, {0, 2, 3, 1});
  return b.transpose(path, b.layer_norm_at(path, last, module, kEpsilon), {0, 3, 1, 2});
}

Value* block(Builder& b, Value* x, const std::string& module) {
  const int64_t channels = Builder::channels_of(x);
  const std::string part = module + ".block.";
  Value* y = b.conv(x, part + "0", {.out = channels, .kernel = 7, .group = channels, .bias = true, .gain = 1.0});
  y = b.transpose(b.enter(part + "1"), y, {0, 2, 3, 1});
  y = b.layer_norm(y, part + "2", kEpsilon);
  y = b.gelu(b.token_linear(y, part + "3", 4 * channels, 2.0), part + "4");
  y = b.token_linear(y, part + "5", channels);
  y = b.transpose(b.enter(part + "6"), y, {0, 3, 1, 2});
  const std::string path = b.enter(module);
  Value* scale = b.uniform(module + ".layer_scale", {channels, 1, 1}, 0.2, 0.5);
  return b.at(path, "add", "Add", {b.at(path, "mul", "Mul", {scale, y}), x});
}

Graph build(const char* name, const ZooOptions& options, const std::vector<Stage>& stages) {
  Builder b(name, options);
  Value* x = b.input(3, 224);
  x = b.conv(x, "features.0.0",
             {.out = b.channels(stages[0].channels), .kernel = 4, .stride = 4, .bias = true, .pad = 0, .gain = 1.0});
  x = layer_norm_2d(b, x, "features.0.1");
  for (size_t s = 0; s < stages.size(); ++s) {
    if (s > 0) {
      const std::string module = fmt::format("features.{}", 2 * s);
      x = b.conv(
          layer_norm_2d(b, x, module + ".0"), module + ".1",
          {.out = b.channels(stages[s].channels), .kernel = 2, .stride = 2, .bias = true, .pad = 0, .gain = 1.0});
    }
    for (int64_t i = 0; i < stages[s].blocks; ++i) x = block(b, x, fmt::format("features.{}.{}", 2 * s + 1, i));
  }
  x = layer_norm_2d(b, b.global_average_pool(x, "avgpool"), "classifier.0");
  x = b.op("flatten", "Flatten", {x}, "classifier.1", {{"axis", int64_t{1}}});
  return b.finish(b.linear(x, "classifier.2", b.classes(1000)));
}

}  // namespace

Graph build_convnext_tiny(const ZooOptions& options) {
  return build("convnext_tiny", options, {{96, 3}, {192, 3}, {384, 9}, {768, 3}});
}
Graph build_convnext_small(const ZooOptions& options) {
  return build("convnext_small", options, {{96, 3}, {192, 3}, {384, 27}, {768, 3}});
}
Graph build_convnext_base(const ZooOptions& options) {
  return build("convnext_base", options, {{128, 3}, {256, 3}, {512, 27}, {1024, 3}});
}
Graph build_convnext_large(const ZooOptions& options) {
  return build("convnext_large", options, {{192, 3}, {384, 3}, {768, 27}, {1536, 3}});
}

}  // namespace opfuse
