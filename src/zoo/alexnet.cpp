// torchvision's AlexNet: five convolutions with bias and ReLU, max-pools of 3x3; an average pool to 6x6, which is the
// identity at 224 (the exporter writes it as a 1x1 pool); three linear layers.
#include <fmt/core.h>

#include "base/fail.hpp"
#include "zoo/builder.hpp"
#include "zoo/models.hpp"

namespace opfuse {

Graph build_alexnet(const ZooOptions& options) {
  struct Layer {
    int64_t channels, kernel, stride, pad;
    bool pool;
  };
  constexpr Layer kLayers[] = {
      {64, 11, 4, 2, true}, {192, 5, 1, 2, true}, {384, 3, 1, 1, false}, {256, 3, 1, 1, false}, {256, 3, 1, 1, true}};
  Builder b("alexnet", options);
  Value* x = b.input(3, 224);
  if (x->type.shape[2].value() < 63)
    throw fail(E::bad_option, "alexnet needs a resolution of 63 at least, not {}", x->type.shape[2].value());
  int child = 0;
  for (const Layer& l : kLayers) {
    x = b.conv(x, fmt::format("features.{}", child++),
               {.out = b.channels(l.channels), .kernel = l.kernel, .stride = l.stride, .bias = true, .pad = l.pad});
    x = b.relu(x, fmt::format("features.{}", child++));
    if (l.pool) x = b.max_pool(x, fmt::format("features.{}", child++), 3, 2, 0);
  }
  const int64_t size = x->type.shape[2].value();
  x = b.flatten(b.average_pool(x, "avgpool", size % 6 == 0 ? size / 6 : 1));
  x = b.relu(b.linear(x, "classifier.1", b.channels(4096), 2.0), "classifier.2");
  x = b.relu(b.linear(x, "classifier.4", b.channels(4096), 2.0), "classifier.5");
  return b.finish(b.linear(x, "classifier.6", b.classes(1000)));
}

}  // namespace opfuse
