// The plain loop nest, which takes any layouts, and updates at computed indices, which are one too.
#include <algorithm>

#include "cpu/algorithms.hpp"
#include "cpu/contraction/direct_cost.hpp"
#include "cpu/parts_schedule.hpp"
#include "cpu/schedule_parts.hpp"
#include "cpu/skeletons.hpp"
#include "kernel/views.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

struct GenericSchedule : Activations {
  Given<0> generic;  ///< a contraction or window without register tiles
  Given<0> threads;  ///< that parts are cut for (cpu/emit/nest.cpp), where they are many
  template <class Self, class F>
  static void each(Self& self, F&& field) {
    field("generic", self.generic, kFlag);
    field("threads", self.threads, Range{});
    Activations::each(self, field);
  }
};

bool has_one_stage(const Region& region, const TargetInfo&) { return is_single_stage(region); }

bool is_scatter(const Region& region, const TargetInfo&) {
  return is_single_stage(region) && region.stages[0].anchor == Anchor::scatter;
}

std::optional<std::string> refuses(const Region& region, const TargetInfo&) { return refuse_sums(region); }

/// Lanes run along one block of all results.
bool lie_alike(const Region& region, const std::vector<ParamLayout>& layouts) {
  const std::vector<Block>* first = nullptr;
  for (const StageOutput& o : region.stages[0].outputs) {
    if (o.param < 0) continue;
    const std::vector<Block>& blocks = layouts[static_cast<size_t>(o.param)].layout.blocks;
    if (first && *first != blocks) return false;
    first = &blocks;
  }
  return true;
}

std::vector<Candidate> nest(const Region& region, const std::vector<ParamLayout>& layouts, const TargetInfo& target,
                            size_t) {
  if (!lie_alike(region, layouts)) return {};
  GenericSchedule s;
  const Anchor anchor = region.stages[0].anchor;
  if (anchor == Anchor::contraction || anchor == Anchor::window) s.generic = 1;
  if (target.launch.threads > kFewThreads) s.threads = target.launch.threads;
  return {{0, erased("generic", s)}};
}

std::vector<Candidate> updates(const Region&, const std::vector<ParamLayout>&, const TargetInfo&, size_t) {
  return {{0, erased("scatter", Activations{})}};
}

constexpr int64_t kLanesOfFew = 4;  // a quarter of a vector of outputs, or fewer

/// Taps along one axis, pixels next to each other: a convolution of signals. 0.2 to 1.0 of the time of one lane of
/// eight with one output; with two of them, or strides, up to several times as long (AMD Zen 3).
bool is_line(const ContractionView& view) {
  const auto steps = [&](const SlidingDim& d) { return d.axis == view.pixel && d.stride == 1; };
  return view.taps.size() == 1 && row_axis_of(view) < 0 && std::any_of(view.sliding.begin(), view.sliding.end(), steps);
}

/// A product with so few outputs that lanes of them stay idle: lanes of its rows compute them side by side. Its data is
/// computed, or it is a convolution of signals: pixels in the lanes (cpu/pixels) take images alone and no functions.
bool has_few_outputs(const Region& region, const TargetInfo& target) {
  if (!is_single_stage(region) || region.stages[0].anchor != Anchor::contraction) return false;
  const Stage& stage = region.stages[0];
  const auto found = view_products(region, 0);
  if (stage.reductions.size() != 1 || !std::holds_alternative<ContractionView>(found)) return false;
  const auto& view = std::get<ContractionView>(found);
  const auto outputs = axis_extent(stage, view.vec).constant();
  const auto pixels = view.pixel < 0 ? std::nullopt : axis_extent(stage, view.pixel).constant();
  if (!outputs || !pixels || view.group_out || view.coded || *pixels < target.lanes_f32()) return false;
  if (!view.taps.empty()) return *outputs == 1 && is_line(view);
  const std::vector<Expr>& factors = stage.reductions[0].value.args();
  const bool computes = std::any_of(factors.begin(), factors.end(), [](const Expr& e) { return !e.args().empty(); });
  return computes && *outputs * kLanesOfFew <= target.lanes_f32();
}

std::vector<Candidate> nest_of_dense(const Region& region, const std::vector<ParamLayout>& layouts,
                                     const TargetInfo& target, size_t most) {
  const auto is_dense = [](const ParamLayout& l) { return l.layout.is_dense(); };
  const auto reads_rows = [&](const Read& r) {
    const size_t p = static_cast<size_t>(r.index);
    return region.params[p].role == ParamRole::constant || is_dense(layouts[p]);
  };
  const Stage& stage = region.stages[0];
  const bool fits = std::all_of(stage.reads.begin(), stage.reads.end(), reads_rows) &&
                    std::all_of(stage.outputs.begin(), stage.outputs.end(),
                                [&](const StageOutput& o) { return is_dense(layouts[static_cast<size_t>(o.param)]); });
  return fits ? nest(region, layouts, target, most) : std::vector<Candidate>{};
}

double cost(const Region& region, const Schedule& schedule, const TargetInfo& target) {
  if (std::holds_alternative<ContractionView>(view_contraction(region, 0)))
    return target.kernels.without_tiles * tiled_cycles(region, schedule, target);
  return roof_cycles(region, target, 1);
}

}  // namespace

Skeleton scatter_skeleton() {
  return {.name = "scatter",
          .form = kCollapsed,
          .see = is_scatter,
          .any_layouts = true,
          .candidates = updates,
          .verify = verify_as<Activations>};
}

Skeleton generic_skeleton() {
  return {.name = "generic",
          .form = kCollapsed,
          .see = has_one_stage,
          .refuses = refuses,
          .any_layouts = true,
          .candidates = nest,
          .verify = verify_as<GenericSchedule>,
          .cost = cost};
}

/// Products of a few outputs, in front of those with channels in the lanes.
Skeleton few_outputs_skeleton() {
  Skeleton skeleton = generic_skeleton();
  skeleton.see = has_few_outputs;
  skeleton.any_layouts = false;
  skeleton.candidates = nest_of_dense;
  return skeleton;
}

}  // namespace opfuse
