// torchvision's ResNet:  stem conv 7x7/2, BN, ReLU, max-pool 3x3/2;  four stages of residual blocks;  mean, linear.
//
//   basic       x -- conv3x3 -- bn -- relu -- conv3x3 -- bn ------------------- + -- relu
//   bottleneck  x -- conv1x1 -- bn -- relu -- conv3x3 -- bn -- relu -- conv1x1 -- bn -- + -- relu
//               \---------------- [conv1x1/stride -- bn where the shape changes] ------/
#include <array>
#include <string>

#include "base/fail.hpp"
#include "zoo/builder.hpp"
#include "zoo/models.hpp"

namespace opfuse {
namespace {

constexpr double kBranchGamma = 0.3;  // the sum over 3 to 36 branches of a stage stays of the order of its input

struct ResNetShape {
  const char* name;
  bool bottleneck;
  std::array<int, 4> blocks;
};

Value* residual_block(Builder& b, Value* x, const std::string& path, int64_t width, int64_t stride, bool bottleneck) {
  const int64_t out = bottleneck ? 4 * width : width;
  Value* y = x;
  if (bottleneck) {
    y = b.relu(b.batch_norm(b.conv(y, path + ".conv1", {.out = width}), path + ".bn1"), path + ".relu");
    y = b.conv(y, path + ".conv2", {.out = width, .kernel = 3, .stride = stride});
    y = b.relu(b.batch_norm(y, path + ".bn2"), path + ".relu");
    y = b.batch_norm(b.conv(y, path + ".conv3", {.out = out}), path + ".bn3", kBranchGamma);
  } else {
    y = b.conv(y, path + ".conv1", {.out = width, .kernel = 3, .stride = stride});
    y = b.relu(b.batch_norm(y, path + ".bn1"), path + ".relu");
    y = b.batch_norm(b.conv(y, path + ".conv2", {.out = width, .kernel = 3}), path + ".bn2", kBranchGamma);
  }
  if (stride != 1 || Builder::channels_of(x) != out) {
    x = b.conv(x, path + ".downsample.0", {.out = out, .stride = stride});
    x = b.batch_norm(x, path + ".downsample.1");
  }
  return b.relu(b.add(y, x, path), path + ".relu");
}

Graph build_resnet(const ResNetShape& shape, const ZooOptions& options) {
  Builder b(shape.name, options);
  Value* x = b.input(3, 224);
  x = b.conv(x, "conv1", {.out = b.channels(64), .kernel = 7, .stride = 2});
  x = b.relu(b.batch_norm(x, "bn1"), "relu");
  x = b.max_pool(x, "maxpool", 3, 2, 1);
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < shape.blocks[static_cast<size_t>(stage)]; ++block)
      x = residual_block(b, x, fmt::format("layer{}.{}", stage + 1, block), b.channels(64 << stage),
                         stage > 0 && block == 0 ? 2 : 1, shape.bottleneck);
  x = b.flatten(b.global_average_pool(x, "avgpool"));
  return b.finish(b.linear(x, "fc", b.classes(1000)));
}

}  // namespace

Graph build_resnet18(const ZooOptions& options) { return build_resnet({"resnet18", false, {2, 2, 2, 2}}, options); }
Graph build_resnet34(const ZooOptions& options) { return build_resnet({"resnet34", false, {3, 4, 6, 3}}, options); }
Graph build_resnet50(const ZooOptions& options) { return build_resnet({"resnet50", true, {3, 4, 6, 3}}, options); }
Graph build_resnet101(const ZooOptions& options) { return build_resnet({"resnet101", true, {3, 4, 23, 3}}, options); }
Graph build_resnet152(const ZooOptions& options) { return build_resnet({"resnet152", true, {3, 8, 36, 3}}, options); }

}  // namespace opfuse
