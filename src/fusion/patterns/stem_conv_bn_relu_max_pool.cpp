//     image[N,3,H,W] -- Conv 7x7 -- [BatchNorm] -- Activation -- MaxPool -- y
//
// The stem of a ResNet: the largest tensor of the network never reaches memory. Besides channels and kernel the
// strides, padding and window are checked, because the pooled tile's halo is recomputed.
#include <fmt/format.h>

#include <algorithm>

#include "fusion/patterns.hpp"
#include "match/activation.hpp"
#include "ops/conv.hpp"
#include "ops/pool.hpp"

namespace opfuse {

static bool within(const std::vector<int64_t>& values, int64_t low, int64_t high) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= low && v <= high; });
}

static std::optional<Decline> is_stem(const Node& node) {
  const Conv::Attrs& a = node.as<Conv>();
  const Shape& w = node.input(1)->type.shape;
  auto no = [&](std::string why) { return Decline{"not_a_stem", std::move(why), {node.name()}}; };
  if (w.rank() != 4 || a.group != 1)
    return no(fmt::format("weights {} and group {} are not a plain 2-D convolution", w.text(), a.group));
  if (w[1] != Dim(3)) return no(fmt::format("it reads {} channels, not 3", w[1].text()));
  if (w[2] != Dim(7) || w[3] != Dim(7))
    return no(fmt::format("its kernel is {}x{}, not 7x7", w[2].text(), w[3].text()));
  if (!within(a.strides, 1, 4)) return no(fmt::format("its strides are {}", text_of(AttrValue(a.strides))));
  if (!within(a.dilations, 1, 1)) return no(fmt::format("its dilations are {}", text_of(AttrValue(a.dilations))));
  if (!within(a.pads, 0, 3)) return no(fmt::format("its pads {} exceed half the kernel", text_of(AttrValue(a.pads))));
  return std::nullopt;
}

static std::optional<Decline> is_small_pool(const Node& node) {
  const MaxPool::Attrs& a = node.as<MaxPool>();
  if (a.kernel_shape.size() == 2 && within(a.kernel_shape, 1, 3) && within(a.strides, 1, 3) &&
      within(a.dilations, 1, 1))
    return std::nullopt;
  return Decline{"pool_window",
                 fmt::format("window {}, strides {}, dilations {}", text_of(AttrValue(a.kernel_shape)),
                             text_of(AttrValue(a.strides)), text_of(AttrValue(a.dilations))),
                 {node.name()}};
}

FusionPattern stem_conv_bn_relu_max_pool() {
  return {.name = "StemConvBNReLUMaxPool",
          .module = "FusedConvBNReLUMaxPool",
          .doc = "The 7x7 stem convolution of an image with activation and max-pool.",
          .topology = op("conv", "conv").where({"3 channels, 7x7", is_stem}) >> maybe(op("batch_norm", "bn")) >>
                      activation("act") >> op("max_pool", "pool").where({"small window", is_small_pool}),
          .where = {one_float_dtype({"conv", "bn", "act", "pool"})},
          .root = "conv",
          .points = {{"INPUT", "conv"}}};
}

}  // namespace opfuse
