#include "driver/ledger_questions.hpp"

#include "base/fail.hpp"
#include "cpu/group_cost.hpp"
#include "driver/pipeline.hpp"
#include "region/lower.hpp"
#include "region/operand_reads.hpp"
#include "target/capabilities.hpp"

namespace opfuse {

/// Of a module that is several kernels: by the nodes of its body.
static std::optional<double> reads_inside(const Node& node, size_t operand) {
  if (!node.body || operand >= node.body->inputs().size()) return std::nullopt;
  std::optional<double> reads;
  for (const Use& use : node.body->inputs()[operand]->uses)
    if (const auto own = reads_of_operand(*use.node, use.index)) reads = reads.value_or(0) + *own;
  return reads;
}

std::optional<double> reads_of_operand(const Node& node, size_t operand) {
  try {
    if (operand >= node.inputs.size()) return std::nullopt;
    const auto lowered = lower_group(node);
    if (const auto* why = std::get_if<Decline>(&lowered); why && why->code == "recurrent" && !node.body) return 1;
    const auto* group = std::get_if<LoweredGroup>(&lowered);
    if (!group) return reads_inside(node, operand);
    std::optional<double> reads;
    for (size_t param = 0; param < group->operands.size(); ++param)
      if (group->operands[param].value == node.inputs[operand])
        reads = reads.value_or(0) + reads_by_element(group->region, static_cast<int>(param));
    return reads;
  } catch (const Error& error) {  // an operand that only the whole graph knows
    if (error.diagnostic().name == "internal") throw;
    return std::nullopt;
  }
}

Traffic traffic_on(const TargetInfo& target) {
  if (!target.traits.on_host)
    return [target](int64_t bytes, int64_t) {
      return 1e6 * (target.gpu_launch_seconds + static_cast<double>(bytes) / target.gpu_bytes_per_second);
    };
  return [target](int64_t bytes, int64_t of) {
    const double rate = rate_of(static_cast<double>(of), target);
    return microseconds(target.launch.cycles + (rate > 0 ? static_cast<double>(bytes) / rate : 0), target);
  };
}

LaunchPrices launch_prices(const TargetInfo& target) {
  if (!has_generator(target)) return {};
  return {[target](const Region& region) { return price_of_region(region, target); }, reads_of_operand,
          traffic_on(target)};
}

}  // namespace opfuse
