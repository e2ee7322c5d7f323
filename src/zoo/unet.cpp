// U-Net (Ronneberger 2015, with padding and BatchNorm as commonly trained): four levels down, four up, skips by Concat.
//
//   x -- double -- pool -- double -- pool -- ... -- double -- up -- concat(skip) -- double -- ... -- conv1x1
//   double: (conv3x3 -- bn -- relu) twice        up: transposed convolution 2x2/2
#include <string>
#include <vector>

#include "base/fail.hpp"
#include "zoo/builder.hpp"
#include "zoo/models.hpp"

namespace opfuse {
namespace {

Value* double_conv(Builder& b, Value* x, const std::string& path, int64_t out) {
  for (int i = 0; i < 2; ++i) {
    x = b.conv(x, fmt::format("{}.{}", path, 3 * i), {.out = out, .kernel = 3});
    x = b.relu(b.batch_norm(x, fmt::format("{}.{}", path, 3 * i + 1)), fmt::format("{}.{}", path, 3 * i + 2));
  }
  return x;
}

}  // namespace

Graph build_unet(const ZooOptions& options) {
  constexpr int kLevels = 4;
  Builder b("unet", options);
  Value* x = b.input(3, 256);
  const int64_t size = x->type.shape[2].value();
  if (size % 16 != 0) throw fail(E::bad_option, "unet needs a resolution that is a multiple of 16, not {}", size);
  std::vector<Value*> skips;
  for (int level = 0; level < kLevels; ++level) {
    x = double_conv(b, x, fmt::format("down.{}", level), b.channels(64 << level));
    skips.push_back(x);
    x = b.max_pool(x, "pool", 2, 2, 0);
  }
  x = double_conv(b, x, "bottom", b.channels(64 << kLevels));
  for (int level = kLevels - 1; level >= 0; --level) {
    const int64_t channels = b.channels(64 << level);
    const int child = kLevels - 1 - level;
    x = b.conv_transpose(x, fmt::format("up.{}", child), channels, 2);
    x = b.op("concat", "Concat", {skips[static_cast<size_t>(level)], x}, "", {{"axis", int64_t{1}}});
    x = double_conv(b, x, fmt::format("up_conv.{}", child), channels);
  }
  return b.finish(b.conv(x, "head", {.out = b.classes(21), .bias = true, .gain = 1.0}));
}

}  // namespace opfuse
