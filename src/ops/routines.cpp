#include "ops/routines.hpp"

#include "ops/axes.hpp"
#include "ops/choose.hpp"
#include "ops/compress.hpp"
#include "ops/is_a.hpp"
#include "ops/non_max_suppression.hpp"
#include "ops/non_zero.hpp"
#include "ops/read_sizes.hpp"
#include "ops/unique.hpp"

namespace opfuse {
namespace {

/// Counted from the front.
std::vector<int64_t> axis_of(const std::vector<int64_t>& axis, const Node& node) {
  if (axis.empty()) return {};
  return {static_cast<int64_t>(normalize_axis(axis[0], node.input(0)->type.shape.rank()))};
}

RoutineCall call_of(const Node& node) {
  if (is_a<Choose>(node)) return {"choose", node.as<Choose>().axes, node.as<Choose>().defines};
  if (is_a<NonZero>(node)) return {"non_zero", {}, node.as<NonZero>().defines};
  if (is_a<NonMaxSuppression>(node)) {
    const NonMaxSuppression::Attrs& a = node.as<NonMaxSuppression>();
    return {"non_max_suppression", {a.center_point_box}, a.defines};
  }
  if (is_a<Compress>(node)) return {"compress", axis_of(node.as<Compress>().axis, node), node.as<Compress>().defines};
  if (is_a<Unique>(node)) {
    const Unique::Attrs& a = node.as<Unique>();
    RoutineCall call{"unique", {a.sorted}, a.defines};
    for (const int64_t axis : axis_of(a.axis, node)) call.settings.push_back(axis);
    return call;
  }
  if (is_a<ReadSizes>(node)) return {"read_sizes", {}, node.as<ReadSizes>().defines};
  return {};
}

}  // namespace

std::optional<RoutineCall> routine_of(const Node& node) {
  if (node.op->kind != OpKind::shape || !node.input(0) || !node.input(0)->type.shape.ranked) return std::nullopt;
  RoutineCall call = call_of(node);
  if (call.name.empty() || call.defines.empty()) return std::nullopt;
  return call;
}

}  // namespace opfuse
