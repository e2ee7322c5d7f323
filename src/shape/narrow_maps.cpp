// The images that hold most memory lie in f16 where the least memory is asked for and the numbers are to be f16: those
// of a file of f16, which are computed in f32 (shape/widen_halves.cpp), or all products in f16 of a target that has
// none.
//
//     [conv, relu] -- y f32 -- [conv, ..]      becomes      [conv, relu, cast] -- y' f16 -- [cast f32, conv, ..]
//
// Each such image is rounded once more, when it is stored, as the model says. Readers convert what they load, which
// costs time, so only images that are alive at the peak are narrowed, none once the peak has fallen far, and none at
// all beside weights that are much larger.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fusion/precision.hpp"
#include "ir/outline.hpp"
#include "shape/live_bytes.hpp"
#include "shape/narrow_value.hpp"
#include "shape/shaping_passes.hpp"

namespace opfuse {
namespace {

constexpr const char* kPass = "narrow-maps";
constexpr size_t kImageRank = 4;
constexpr double kFar = 0.57;    // of the peak before: half is the least there is, and each image costs time
constexpr double kWorth = 0.05;  // of weights and peak together; less is not worth the time and a rounding

/// What images may be rounded to; unknown: to nothing.
DType type_of_maps(const ShapeContext& context, const std::vector<ShapeVerdict>& verdicts) {
  for (const ShapeVerdict& v : verdicts)
    if (v.pass == "widen-halves" && !v.refused && v.number("floats") == 0)
      return v.subject == name_of(DType::f16) ? DType::f16 : DType::unknown;
  const bool rounds = !context.multiplies_f16 && !context.precisions.empty() &&
                      std::all_of(context.precisions.begin(), context.precisions.end(),
                                  [](const auto& p) { return p.second == name_of(DType::f16); });
  return rounds ? DType::f16 : DType::unknown;
}

bool is_group(const Node* node) { return node && node->op == fused_op(); }

bool may_be_narrow(const Value* value, const std::set<const Value*>& refused) {
  return value && is_group(value->producer) && value->type.dtype == DType::f32 && value->as_output == 0 &&
         value->type.shape.ranked && value->type.shape.rank() >= kImageRank && !refused.contains(value) &&
         std::all_of(value->uses.begin(), value->uses.end(), [](const Use& use) { return is_group(use.node); });
}

/// The largest image that the node reads or makes.
Value* largest_at(const Node& node, const std::set<const Value*>& refused) {
  Value* best = nullptr;
  for (const auto* values : {&node.inputs, &node.outputs})
    for (Value* value : *values)
      if (may_be_narrow(value, refused) && (!best || constant_bytes(*best) < constant_bytes(*value))) best = value;
  return best;
}

/// Copies for slices, which have no node of the graph, are left out: what they hold is counted twice.
const LiveBytes* peak_of(const std::vector<LiveBytes>& live) {
  const LiveBytes* most = nullptr;
  for (const LiveBytes& at : live)
    if (at.node && (!most || at.bytes > most->bytes)) most = &at;
  return most;
}

/// Of the graph's constants, as they are before narrow-weights.
int64_t weight_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value* value : graph.values())
    if (value->is_constant()) bytes += static_cast<int64_t>(value->constant->bytes());
  return bytes;
}

/// Producer and all readers take it: asked of a copy, since readers are changed one by one.
bool can_narrow(Graph& graph, const Value& value, DType type, const ShapeContext& context) {
  Graph copy = graph.clone();
  const auto& outputs = value.producer->outputs;
  const auto at = std::find(outputs.begin(), outputs.end(), &value) - outputs.begin();
  Node* producer = copy.nodes()[graph.position(value.producer)];
  return narrow_value(copy, producer->outputs[static_cast<size_t>(at)], type, context);
}

ShapeVerdict verdict_on(const Node& producer, DType type, int64_t before) {
  ShapeVerdict verdict{.pass = kPass, .subject = std::string(name_of(type)), .nodes = {name_of_group(producer)}};
  for (const Source& source : producer.sources) verdict.sources.push_back(source.name);
  verdict.numbers["before"] = before;
  return verdict;
}

/// Why no image of a graph with such a peak is narrowed.
std::optional<Decline> not_worth(int64_t peak, int64_t weights) {
  const int64_t all = peak + weights;
  if (static_cast<double>(peak) / 2 >= kWorth * static_cast<double>(all)) return std::nullopt;
  return Decline{"no_gain",
                 fmt::format("half of the {} B at the peak is under {:.0f} % of them and the weights, {} B", peak,
                             100 * kWorth, all),
                 {}};
}

bool run(Graph& fused, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  const DType type = context.least_memory ? type_of_maps(context, verdicts) : DType::unknown;
  if (type == DType::unknown || context.switched_off(kPass)) return false;
  std::set<const Value*> refused;
  std::optional<int64_t> before;
  const size_t first = verdicts.size();
  bool changed = false;
  for (;;) {
    const std::vector<LiveBytes> live = live_bytes(fused);
    const LiveBytes* peak = peak_of(live);
    if (!peak) break;
    if (!before) before = peak->bytes;
    if (first < verdicts.size()) verdicts.back().numbers["bytes"] = peak->bytes;
    if (static_cast<double>(peak->bytes) <= kFar * static_cast<double>(*before)) break;
    Value* value = largest_at(*peak->node, refused);
    if (!value) break;
    ShapeVerdict verdict = verdict_on(*value->producer, type, *before);
    if (first == verdicts.size()) verdict.refused = not_worth(*before, weight_bytes(fused));
    const bool worth = !verdict.refused;
    if (worth && !can_narrow(*peak->graph, *value, type, context))
      verdict.refused = Decline{"no_kernel", "its kernel or that of a reader takes no images of 16 bits", {}};
    if (verdict.refused)
      refused.insert(value);
    else
      narrow_value(*peak->graph, value, type, context), changed = true;
    verdicts.push_back(std::move(verdict));
    if (!worth) break;
  }
  return changed;
}

}  // namespace

ShapingPass narrow_maps() {
  return {kPass, "With the least memory, images of an f16 model that hold most of it lie in f16.", run, true};
}

}  // namespace opfuse
