// What the generator accepts. Everything else is an answer with a reason, never an attempt.
#include <fmt/format.h>

#include "cpu/functions.hpp"
#include "cpu/generator.hpp"
#include "cpu/window/chain_view.hpp"
#include "cpu/window/mean_view.hpp"
#include "kernel/attention_view.hpp"

namespace opfuse {
namespace {

std::optional<std::string> bad_expression(const Expr& e) {
  std::optional<std::string> why;
  e.visit([&](const Expr& x) {
    if (x.args().empty() || why) return;
    if (!has_function(x.op(), x.dtype())) why = fmt::format("{} has no f64 form", name_of(x.op()));
  });
  return why;
}

/// Several sums share one register tile.
std::optional<std::string> bad_sums(const Region& region, const Stage& stage) {
  if (stage.anchor != Anchor::contraction || stage.reductions.size() == 1) return std::nullopt;
  if (region.stages.size() > 1) return "several sums before or behind another stage";
  const auto found = view_products(region, 0);
  if (const auto* why = std::get_if<std::string>(&found)) return "several sums: " + *why;
  const auto& view = std::get<ContractionView>(found);
  if (!axis_extent(stage, view.vec).is_constant() || !channel_depth(stage, view))
    return "several sums over symbolic features";
  if (!view.taps.empty() || view.group_out || view.guarded) return "several sums over windows";
  return std::nullopt;
}

std::optional<std::string> bad_sequence(const Region& region) {
  if (is_empty(region)) return "a stage without elements";
  if (resembles_attention(region)) {
    const auto found = view_attention(region);
    const auto* why = std::get_if<std::string>(&found);
    return why ? std::optional("attention: " + *why) : std::nullopt;
  }
  const size_t stages = stages_without_means(region);
  if (stages == 1) {
    if (region.stages[0].anchor != Anchor::window) return "means are summed by depthwise convolutions and pooling";
    const auto window = view_window(region, 0);
    const auto* why = std::get_if<std::string>(&window);
    return why ? std::optional("a map whose means are wanted: " + *why) : std::nullopt;
  }
  if (stages > 2) return fmt::format("{} stages, at most 2 or those of attention are generated", region.stages.size());
  const auto chain = view_chain(region);
  const auto* why = std::get_if<std::string>(&chain);
  return why ? std::optional(*why) : std::nullopt;
}

}  // namespace

std::optional<std::string> cannot_generate(const Region& region, const TargetInfo&) {
  if (region.stages.empty()) return "no stage";
  for (const Param& p : region.params)
    if (byte_size(p.type.dtype) == 0) return fmt::format("elements of type {}", name_of(p.type.dtype));
  for (const Stage& stage : region.stages) {
    if (stage.anchor == Anchor::attention) return "attention has no skeleton yet";
    if (stage.outputs.empty()) return "a stage without outputs";
    for (const Reduction& r : stage.reductions)
      if (auto why = bad_expression(r.value)) return why;
    if (auto why = bad_sums(region, stage)) return why;
    for (const StageOutput& o : stage.outputs)
      if (auto why = bad_expression(o.value)) return why;
  }
  return region.stages.size() > 1 ? bad_sequence(region) : std::nullopt;
}

}  // namespace opfuse
