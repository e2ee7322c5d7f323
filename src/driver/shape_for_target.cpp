// Legal is what lowers and what the generator takes. A gain is what the costs of kernels say, a row for each pass that
// has one.
#include "driver/shape_for_target.hpp"

#include <algorithm>

#include "cpu/attention/attention_codes.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/decoded_weights.hpp"
#include "cpu/contraction/halves.hpp"
#include "cpu/generator.hpp"
#include "cpu/window/channel_factor_cost.hpp"
#include "cpu/window/mean_bands.hpp"
#include "driver/pipeline.hpp"
#include "fusion/explain/shaping_text.hpp"
#include "link/generators.hpp"
#include "passes/passes.hpp"
#include "program/image_loop.hpp"
#include "region/lower.hpp"
#include "target/capabilities.hpp"

namespace opfuse {
namespace {

/// Why a joined kernel is slower than what it stands for; nothing where it is not.
using Loses = std::optional<std::string> (*)(const Region&, const TargetInfo&);

struct Gain {
  const char* pass;
  Loses loses;
  const char* code = "no_gain";  ///< of the refusal
  Loses slower = nullptr;        ///< asked behind `loses`, code "no_gain"; null: nothing more
};
/// The schedule of a region whose operands lie as its kernel wishes.
Schedule schedule_by(const Generator& generator, const Region& region, const TargetInfo& target) {
  std::vector<ParamLayout> layouts;
  const LayoutWish wish = generator.wish_layouts(region, target);
  for (size_t p = 0; p < region.params.size(); ++p) {
    const Shape& shape = region.params[p].type.shape;
    const Layout layout = wish.params[p].value_or(Layout::dense(shape.rank()));
    layouts.push_back({layout, dense_strides(layout, shape)});
  }
  return generator.choose_schedule(region, layouts, target);
}

std::optional<std::string> no_narrow_kernel(const Region& region, const TargetInfo& target) {
  if (target.traits.on_host) return no_halves_kernel(region, target);
  const Schedule schedule = schedule_by(generator_for(target), region, target);
  for (const char* skeleton : {"mma", "wgmma", "tma"})
    if (schedule.skeleton == skeleton) return std::nullopt;
  return "tensor cores do not take this product";
}

std::optional<std::string> narrow_loses(const Region& region, const TargetInfo& target) {
  return target.traits.on_host ? halves_lose(region, target) : std::nullopt;
}

constexpr Gain kGains[] = {{"sum-codes", no_codes_kernel, "no_kernel"},
                           {"narrow-factors", no_narrow_kernel, "no_kernel", narrow_loses},
                           {"pack-codes", no_decoding_kernel, "no_kernel"},
                           {"join-chains", joining_loses},
                           {"join-gates", joining_loses},
                           {"join-channel-factors", channel_factor_loses}};

Legality question_of(const Gain& gain, const TargetInfo& target) {
  return [gain, target](const Node& joined) -> std::optional<Decline> {
    const auto lowered = lower_group(joined);
    if (const auto* declined = std::get_if<Decline>(&lowered)) return *declined;
    const Region& region = std::get<LoweredGroup>(lowered).region;
    if (const auto why = gain.loses(region, target)) return Decline{gain.code, *why, {}};
    const auto why = gain.slower ? gain.slower(region, target) : std::nullopt;
    return why ? std::optional(Decline{"no_gain", *why, {}}) : std::nullopt;
  };
}

ShapeContext context_for(const TargetInfo& target, const ShapeOptions& options) {
  check_shaping_names(options.no_pass);
  ShapeContext context{.legal = legality_on(target),
                       .caches = image_caches(target),
                       .channel_block = target.lanes_f32(),
                       .off = {options.no_pass.begin(), options.no_pass.end()},
                       .precisions = options.precisions,
                       .multiplies_bf16 = !target.traits.on_host || has_half_products(target),
                       .multiplies_f16 = !target.traits.on_host,
                       .multiplies_bytes = target.traits.on_host && has_byte_products(target),
                       .least_memory = options.least_memory};
  context.skeleton = [target](const Node& node) -> std::string {
    const auto lowered = lower_group(node);
    const auto* made = std::get_if<LoweredGroup>(&lowered);
    return made ? schedule_by(generator_for(target), made->region, target).skeleton : "";
  };
  for (const Gain& gain : kGains) context.gains[gain.pass] = question_of(gain, target);
  context.multiplies_codes = [target](const Node& group) {
    const auto lowered = lower_group(group);
    const auto* made = std::get_if<LoweredGroup>(&lowered);
    return made && target.traits.on_host && multiplies_codes(made->region, target);
  };
  context.bands = [target](const Node& group) {
    const auto lowered = lower_group(group);
    const auto* made = std::get_if<LoweredGroup>(&lowered);
    return made ? mean_bands(made->region, target) : 1;
  };
  return context;
}

bool is_one_of(const std::vector<std::string>& names, const ShapingPass& pass) {
  return std::find(names.begin(), names.end(), pass.name) != names.end();
}

bool runs_on(const ShapingPass& pass, const TargetInfo& target) {
  if (target.traits.shapes_for_caches) return !is_one_of(passes_of_gpus(), pass);
  return has_generator(target) && is_one_of(passes_of_launches(), pass);
}

}  // namespace

Shaping shape_for_target(Graph& fused, const TargetInfo& target, const ShapeOptions& options) {
  Shaping shaping;
  ShapeContext context = context_for(target, options);
  context.apart = options.no_fuse;
  std::vector<Pass> passes;
  for (const ShapingPass& pass : shaping_passes())
    if (runs_on(pass, target) && (!options.only_types || is_one_of(passes_of_types(), pass)))
      passes.push_back(as_pass(pass, context, shaping.verdicts));
  if (!passes.empty()) fused.remove_dead_nodes();  // the plan's leftovers, which no pass has to answer for
  PassOptions with;
  with.target = target.name;
  with.dump_dir = options.dump_dir;
  with.dump_start = {"fused", "the plan applied"};
  with.first_dump = options.first_dump;
  run_passes(fused, passes, with);
  shaping.notes = shaping_lines(shaping.verdicts);
  return shaping;
}

Pass pass_for(std::string_view name, const TargetInfo& target) {
  std::vector<Pass> shaping;
  for (const ShapingPass& pass : shaping_passes()) {
    const auto run = [target, pass](Graph& graph, PassContext& told) {
      std::vector<ShapeVerdict> verdicts;
      const bool changed = run_in_bodies(pass, graph, context_for(target, ShapeOptions{}), verdicts);
      for (const std::string& line : shaping_lines(verdicts)) told.note(line);
      return changed;
    };
    shaping.push_back({pass.name, pass.summary, run, {}});
  }
  return pass_named(name, shaping);
}

}  // namespace opfuse
