#include "cpu/emit/generic/interiors.hpp"

#include <algorithm>

namespace opfuse::cpu {
namespace {

constexpr size_t kMostAxes = 2;      // nine bodies
constexpr int64_t kMostNodes = 100;  // of a body: with all taps of a 3x3 window some 60
constexpr int64_t kLeastTrips = 2;   // of an interior

int64_t nodes_of_body(const Stage& stage) {
  int64_t taps = 1, nodes = 0;
  for (const Dim& d : stage.reduce) taps *= std::min<int64_t>(d.constant().value_or(1), kUnrolledWindow + 1);
  if (taps > kUnrolledWindow) taps = 1;  // a loop
  for (const Reduction& r : stage.reductions) nodes += taps * static_cast<int64_t>(opfuse::nodes_of(r.value).size());
  for (const StageOutput& o : stage.outputs) nodes += static_cast<int64_t>(opfuse::nodes_of(o.value).size());
  return nodes;
}

}  // namespace

std::map<int, AxisRange> interiors_of(const Kernel& k, const Stage& stage, const NestPlan& plan) {
  const bool clips = std::any_of(stage.outputs.begin(), stage.outputs.end(), [](const auto& o) { return o.clipped; });
  if (clips || has_long_epilogue(stage) || nodes_of_body(stage) > kMostNodes) return {};
  std::vector<int> axes = plan.rows;  // outermost first
  axes.insert(axes.end(), plan.inner.begin(), plan.inner.end());
  std::stable_partition(axes.begin(), axes.end(), [&](int axis) { return axis != plan.lane_axis; });
  std::map<int, AxisRange> found;
  for (; !axes.empty() && found.size() < kMostAxes; axes.pop_back()) {
    const int axis = axes.back();
    const auto interior = interior_of(k.spec.region, stage, axis);
    const int64_t step = axis == plan.lane_axis ? plan.width : 1;
    if (interior && (interior->high + 1) / step - (interior->low + step - 1) / step >= kLeastTrips)
      found.emplace(axis, *interior);
  }
  return found;
}

}  // namespace opfuse::cpu
