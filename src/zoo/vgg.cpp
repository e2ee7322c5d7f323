// torchvision's VGG-16 (no BatchNorm): five groups of 3x3 convolutions with bias and ReLU, each followed by max-pool
// 2x2; an average pool to 7x7, which is the identity at 224 (the exporter writes it as a 1x1 pool); three linear
// layers.
#include "base/fail.hpp"
#include "zoo/builder.hpp"
#include "zoo/models.hpp"

namespace opfuse {

Graph build_vgg16(const ZooOptions& options) {
  constexpr int64_t kGroups[][2] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
  Builder b("vgg16", options);
  Value* x = b.input(3, 224);
  const int64_t size = x->type.shape[2].value() / 32;
  if (size < 1 || x->type.shape[2].value() % 32 != 0)
    throw fail(E::bad_option, "vgg16 needs a resolution that is a multiple of 32, not {}", x->type.shape[2].value());
  int child = 0;
  for (const auto& [channels, count] : kGroups) {
    for (int64_t i = 0; i < count; ++i) {
      x = b.conv(x, fmt::format("features.{}", child++), {.out = b.channels(channels), .kernel = 3, .bias = true});
      x = b.relu(x, fmt::format("features.{}", child++));
    }
    x = b.max_pool(x, fmt::format("features.{}", child++), 2, 2, 0);
  }
  x = b.average_pool(x, "avgpool", size % 7 == 0 ? size / 7 : 1);
  x = b.flatten(x);
  x = b.relu(b.linear(x, "classifier.0", b.channels(4096), 2.0), "classifier.1");
  x = b.relu(b.linear(x, "classifier.3", b.channels(4096), 2.0), "classifier.4");
  return b.finish(b.linear(x, "classifier.6", b.classes(1000)));
}

}  // namespace opfuse
