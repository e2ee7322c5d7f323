// U-Net (Ronneberger 2015) as trained for segmentation today: padding and BatchNorm, 32 to 256 channels, skips by
// Concat, upsampling by Resize and a convolution.
//
//   x -- double -- pool -- double -- pool -- ... -- double -- up -- concat(skip) -- double -- ... -- conv1x1
//   double: (conv3x3 -- bn -- relu) twice        up: nearest 2x -- conv3x3 -- bn -- relu
#include <string>
#include <vector>

#include "base/fail.hpp"
#include "zoo/builder.hpp"
#include "zoo/models.hpp"

namespace opfuse {
namespace {

Value* conv(Builder& b, Value* x, const std::string& path, int first, int64_t out) {
  x = b.conv(x, fmt::format("{}.{}", path, first), {.out = out, .kernel = 3});
  return b.relu(b.batch_norm(x, fmt::format("{}.{}", path, first + 1)), fmt::format("{}.{}", path, first + 2));
}

Value* double_conv(Builder& b, Value* x, const std::string& path, int64_t out) {
  return conv(b, conv(b, x, path, 0, out), path, 3, out);
}

}  // namespace

Graph build_unet(const ZooOptions& options) {
  constexpr int kLevels = 3;
  Builder b("unet", options);
  Value* x = b.input(3, 256);
  const int64_t size = x->type.shape[2].value();
  if (size % 8 != 0) throw fail(E::bad_option, "unet needs a resolution that is a multiple of 8, not {}", size);
  std::vector<Value*> skips;
  for (int level = 0; level < kLevels; ++level) {
    x = double_conv(b, x, fmt::format("down.{}", level), b.channels(32 << level));
    skips.push_back(x);
    x = b.max_pool(x, "pool", 2, 2, 0);
  }
  x = double_conv(b, x, "bottom", b.channels(32 << kLevels));
  for (int level = kLevels - 1; level >= 0; --level) {
    const int64_t channels = b.channels(32 << level);
    const int child = kLevels - 1 - level;
    const std::string up = fmt::format("up.{}", child);
    x = conv(b, b.upsample(x, up + ".0"), up, 1, channels);
    x = b.op("concat", "Concat", {skips[static_cast<size_t>(level)], x}, "", {{"axis", int64_t{1}}});
    x = double_conv(b, x, fmt::format("up_conv.{}", child), channels);
  }
  return b.finish(b.conv(x, "head", {.out = b.classes(21), .bias = true, .gain = 1.0}));
}

}  // namespace opfuse
