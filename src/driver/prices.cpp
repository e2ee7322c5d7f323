// What groups cost on a target: of CPUs by the model of cycles, of GPUs by bytes and launches.
#include "base/fail.hpp"
#include "cpu/group_cost.hpp"
#include "driver/known_groups.hpp"
#include "driver/pipeline.hpp"
#include "driver/settings.hpp"
#include "fusion/user/capability_rules.hpp"
#include "link/generators.hpp"
#include "ops/recurrent_steps.hpp"
#include "passes/expand_recurrent.hpp"
#include "program/work_list.hpp"
#include "region/lower.hpp"
#include "region/single_stage.hpp"

namespace opfuse {

namespace {

/// A contraction or window whose data is more than read.
bool computes_data(const Stage& stage) {
  if (stage.anchor != Anchor::contraction && stage.anchor != Anchor::window) return false;
  int operations = 0;
  for (const Reduction& reduction : stage.reductions)
    reduction.value.visit([&](const Expr& e) {
      const bool moves = e.args().empty() || e.op() == ExprOp::select || e.op() == ExprOp::cast;
      operations += moves || !is_float(e.dtype()) ? 0 : 1;
    });
  return operations > (stage.anchor == Anchor::contraction ? static_cast<int>(stage.reductions.size()) : 0);
}

/// GPUs have no model of instructions: bytes and launches decide, and nothing is computed again in front of sums.
GroupPrice price_of_bytes(const Region& region, const TargetInfo& target) {
  SymbolValues ones;
  for (const std::string& symbol : region.symbols()) ones[symbol] = 1;
  const RegionCost cost = cost_of(region, ones);
  const double bytes = cost.bytes_read + cost.bytes_written;
  const double time = 1e6 * (target.gpu_launch_seconds + bytes / target.gpu_bytes_per_second);
  return {time, time, static_cast<int64_t>(bytes)};
}

GroupPrice price_of_cycles(const Region& region, const TargetInfo& target) {
  const GroupCost dense = group_cost(region, target, LayoutGuess::dense);
  const GroupCost blocked = lies_in_blocks(region) ? group_cost(region, target, LayoutGuess::channel_blocks) : dense;
  return {microseconds(dense.cycles, target), microseconds(blocked.cycles, target), static_cast<int64_t>(dense.bytes)};
}

std::variant<GroupPrice, Decline> price_of_launch(const Region& region, const Node& node, const TargetInfo& target) {
  if (auto decline = refusal_of(region, node.name(), target)) return *decline;
  for (const Stage& stage : region.stages)
    if (!target.traits.on_host && computes_data(stage))
      return Decline{
          "prologue_recompute", "what stands in front of sums would be computed for each of them", {node.name()}};
  return price_of_region(region, target);
}

/// A single operator that is several launches (top_k): one for each of its stages.
std::variant<GroupPrice, Decline> price_in_parts(LoweredGroup group, const Node& node, const TargetInfo& target) {
  Temporaries temporaries;
  GroupPrice sum;
  for (const LoweredGroup& part : separate_stages(std::move(group), temporaries)) {
    const auto price = price_of_launch(part.region, node, target);
    if (const auto* decline = std::get_if<Decline>(&price)) return *decline;
    sum += std::get<GroupPrice>(price);
  }
  return sum;
}

/// A recurrent layer by itself: the product of all steps, and the launches of a step as often as it has steps.
std::variant<GroupPrice, Decline> price_of_layer(Graph layer, const Decline& why, const TargetInfo& target) {
  if (layer.nodes().size() != 1 || !expand_recurrent(layer)) return why;
  GroupPrice sum;
  const auto add = [&](const Region& region, const Node& node, double times) {
    const auto price = price_of_launch(region, node, target);
    if (const auto* known = std::get_if<GroupPrice>(&price)) sum += known->times(times);
  };
  for (const Node* node : layer.nodes()) {
    if (node->op == recurrent_steps_op()) {
      const auto steps = lower_steps(*node);
      if (const auto* groups = std::get_if<std::vector<LoweredGroup>>(&steps))
        for (const LoweredGroup& g : *groups) add(g.region, *node, static_cast<double>(g.steps.constant().value_or(1)));
    } else if (node->body) {  // weights turned and cut beside it are constants
      const auto lowered = lower_group(*node);
      if (const auto* group = std::get_if<LoweredGroup>(&lowered)) add(group->region, *node, 1);
    }
  }
  return sum;
}

std::variant<GroupPrice, Decline> price_on(const Node& node, const TargetInfo& target) {
  auto lowered = lower_group(node);
  if (auto* decline = std::get_if<Decline>(&lowered)) {
    if (decline->code == "recurrent" && node.body) return price_of_layer(node.body->clone(), *decline, target);
    return *decline;
  }
  auto& group = std::get<LoweredGroup>(lowered);
  auto price = price_of_launch(group.region, node, target);
  if (std::holds_alternative<GroupPrice>(price) || node.body || is_single_stage(group.region)) return price;
  return price_in_parts(std::move(group), node, target);
}

}  // namespace

GroupPrice price_of_region(const Region& region, const TargetInfo& target) {
  return target.traits.on_host ? price_of_cycles(region, target) : price_of_bytes(region, target);
}

Pricing pricing_on(const TargetInfo& target) {
  using Price = std::variant<GroupPrice, Decline>;
  return [target, rules = capability_rules(target), known = KnownGroups<Price>()](const Node& node) -> Price {
    if (rules)
      if (auto decline = rules->refuse(node)) return *decline;
    try {
      Price price = known(
          node, [&] { return price_on(node, target); },
          [](const Price& answer) {
            const auto* decline = std::get_if<Decline>(&answer);
            return !decline || decline->code == kNotGenerated;
          });
      if (auto* decline = std::get_if<Decline>(&price); decline && decline->code == kNotGenerated)
        decline->evidence = {node.name()};  // of another group of this structure, perhaps
      return price;
    } catch (const Error& error) {  // an operand that only the whole graph knows
      if (error.diagnostic().name == "internal") throw;
      return Decline{"dynamic_operand", error.diagnostic().message, {node.name()}};
    }
  };
}

}  // namespace opfuse
