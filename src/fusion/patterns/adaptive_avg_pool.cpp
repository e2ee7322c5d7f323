//     x[N,C,H,W] -- mean over H, W -- y
//
// GlobalAveragePool, ReduceMean over the spatial axes, or AveragePool with a window as large as the map. The mean over
// the last axis of three may be that of a row of features, so ReduceMean needs two spatial axes.
#include <fmt/format.h>

#include "fusion/patterns.hpp"
#include "ops/pool.hpp"
#include "ops/reduce.hpp"

namespace opfuse {

static std::optional<Decline> spatial_mean(const Node& node) {
  const Shape& x = node.input(0)->type.shape;
  if (!x.ranked || x.rank() < 4)
    return Decline{"rank", fmt::format("{} has no two spatial axes", x.text()), {node.name()}};
  std::vector<int64_t> operand;
  if (node.input(1) && !node.input(1)->is_constant())
    return Decline{"not_constant", "the axes are computed", {node.name()}};
  if (node.input(1)) operand = node.input(1)->constant->to_i64();
  const std::vector<int64_t> axes = reduced_axes(node.as<ReduceMean>(), node.input(1) ? &operand : nullptr, x.rank());
  bool spatial = axes.size() == x.rank() - 2;
  for (size_t i = 0; spatial && i < axes.size(); ++i) spatial = axes[i] == static_cast<int64_t>(i + 2);
  if (spatial) return std::nullopt;
  return Decline{"axes", fmt::format("it reduces axes {} of {}", text_of(AttrValue(axes)), x.text()), {node.name()}};
}

static std::optional<Decline> whole_window(const Node& node) {
  const AveragePool::Attrs& a = node.as<AveragePool>();
  const Shape& x = node.input(0)->type.shape;
  bool whole = x.ranked && x.rank() == a.kernel_shape.size() + 2;
  for (size_t i = 0; whole && i < a.kernel_shape.size(); ++i) whole = x[i + 2] == Dim(a.kernel_shape[i]);
  for (int64_t p : a.pads) whole = whole && p == 0;
  if (whole) return std::nullopt;
  return Decline{"partial_window",
                 fmt::format("the window {} is not the whole map of {}", text_of(AttrValue(a.kernel_shape)), x.text()),
                 {node.name()}};
}

FusionPattern adaptive_avg_pool() {
  return {.name = "AdaptiveAvgPool",
          .module = "FusedAdaptiveAvgPool2d",
          .doc = "Global average pooling.",
          .topology = one_of({op("global_average_pool", "pool"),
                              op("reduce_mean", "pool").where({"spatial axes", spatial_mean}),
                              op("average_pool", "pool").where({"whole map", whole_window})}),
          .where = {one_float_dtype({"pool"})},
          .root = "pool",
          .points = {{"INPUT", "pool"}, {"OUTPUT", ""}}};
}

}  // namespace opfuse
