#include "cpu/algorithms.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/activation_form.hpp"
#include "cpu/contraction/codes.hpp"
#include "cpu/contraction/direct_cost.hpp"
#include "cpu/memory_rates.hpp"
#include "cpu/winograd/schedule_winograd.hpp"
#include "kernel/collapse.hpp"

namespace opfuse {
namespace {

SymbolValues ones(const Region& region) {
  SymbolValues values;
  for (const std::string& symbol : region.symbols()) values[symbol] = 1;
  return values;
}

int64_t stored_bytes(const ParamLayout& l, const TensorType& type) {
  return l.layout.physical_elements(type.shape).constant().value_or(0) * static_cast<int64_t>(byte_size(type.dtype));
}

constexpr std::pair<const char*, WinogradTile> kTiles[] = {{"f2", {2, 2}}, {"f4x2", {4, 2}}, {"f4", {4, 4}}};

AlgorithmOption winograd_option(const char* name, const WinogradTile& tile, const Region& region, int weights,
                                const std::vector<ParamLayout>& layouts, const WinogradView& view,
                                const TargetInfo& target, int64_t threads) {
  AlgorithmOption option{name, std::nullopt, {}, 0, 0, 0};
  const Stage& stage = region.stages[0];
  const int64_t vectors = winograd_vectors(stage, view, tile, target);
  if (vectors == 0) return option;
  std::vector<ParamLayout> changed = layouts;
  ParamLayout& w = changed[static_cast<size_t>(weights)];
  const TensorType& type = region.params[static_cast<size_t>(weights)].type;
  w.layout = winograd_weights(view, tile, vectors, target);
  w.strides = dense_strides(w.layout, type.shape);
  const auto plans = plan_winograd(region, changed, target, threads, 1);
  if (plans.empty()) return option;
  const WinogradPlan& plan = plans.front().choice;
  option.schedule = erased(kWinogradName, plan.schedule);
  option.weights = w.layout;
  option.cycles = winograd_cycles(plan.work, plan.choice, target, threads) + target.kernels.winograd_launch;
  option.scratch_bytes = plan.choice.scratch_bytes;
  option.weight_bytes = stored_bytes(w, type);
  return option;
}

}  // namespace

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names = {"direct"};
  for (const auto& [name, tile] : kTiles) names.emplace_back(name);
  return names;
}

std::optional<WinogradTile> winograd_tile(const std::string& algorithm) {
  for (const auto& [name, tile] : kTiles)
    if (algorithm == name) return tile;
  return std::nullopt;
}

AlgorithmOptions algorithm_options(const Region& region, const std::vector<ParamLayout>& layouts,
                                   const Schedule& direct, const TargetInfo& target, int64_t threads) {
  AlgorithmOptions found;
  const Collapsed c = collapse(region, layouts);
  const auto view = view_winograd(c.region, 0);
  if (const auto* why = std::get_if<std::string>(&view)) {
    found.refused = *why;
    return found;
  }
  const auto& winograd = std::get<WinogradView>(view);
  found.codes = winograd.codes();
  if (found.codes && has_byte_products(target)) {
    found.refused = "the target multiplies four codes at once";
    return found;
  }
  const Stage& stage = c.region.stages[0];
  found.weights = stage.reads[static_cast<size_t>(winograd.contraction.weights)].index;
  const auto w = static_cast<size_t>(found.weights);
  AlgorithmOption plain{"direct", std::nullopt, direct, 0, 0, 0};
  plain.weight_bytes = stored_bytes(layouts[w], region.params[w].type);
  plain.cycles = direct_cycles(region, direct, plain.weight_bytes, target, threads);
  found.options.push_back(std::move(plain));
  for (const auto& [name, tile] : kTiles) {
    AlgorithmOption option = winograd_option(name, tile, c.region, found.weights, c.layouts, winograd, target, threads);
    if (!option.weights) continue;
    if (direct.get(kActivationTables, 0)) option.schedule.set(kActivationTables, 1);
    found.options.push_back(std::move(option));
  }
  const int64_t group = winograd.contraction.group_out;
  if (found.options.size() == 1)
    found.refused = group && winograd_vectors(stage, winograd, WinogradTile{}, target) == 0
                        ? "its groups do not fill whole vectors of channels"
                        : "its channels or operands are not stored in whole vectors";
  return found;
}

double roof_cycles(const Region& region, const TargetInfo& target, int64_t threads) {
  const RegionCost cost = cost_of(region, ones(region));
  const double rate = 2.0 * static_cast<double>(target.fma_units * target.lanes_f32() * threads);
  return std::max(cost.flops / rate, (cost.bytes_read + cost.bytes_written) / memory_bytes_per_cycle(target, threads));
}

bool is_convolution(const Region& region) {
  if (region.stages.empty() || region.stages[0].anchor != Anchor::contraction) return false;
  auto view = view_contraction(region, 0);
  if (!std::holds_alternative<ContractionView>(view) && sums_codes(region)) view = view_products(region, 0);
  if (!std::holds_alternative<ContractionView>(view)) return false;
  // an image and filters: a product of matrices, batched or not, has neither
  const auto& c = std::get<ContractionView>(view);
  const Read& data = region.stages[0].reads[static_cast<size_t>(c.data)];
  const Read& weights = region.stages[0].reads[static_cast<size_t>(c.weights)];
  return data.map.dims.size() > 2 && weights.map.dims.size() > 2 && weights.stage < 0 &&
         region.params[static_cast<size_t>(weights.index)].role == ParamRole::constant;
}

}  // namespace opfuse
