#include "driver/ledger_questions.hpp"

#include <algorithm>
#include <map>

#include "base/fail.hpp"
#include "cpu/group_cost.hpp"
#include "driver/pipeline.hpp"
#include "region/lower.hpp"
#include "region/operand_reads.hpp"
#include "target/capabilities.hpp"

namespace opfuse {

/// Of a module that is several kernels: by the nodes of its body.
static OperandReads reads_inside(const Node& node) {
  OperandReads reads(node.inputs.size());
  for (size_t i = 0; node.body && i < std::min(reads.size(), node.body->inputs().size()); ++i)
    for (const Use& use : node.body->inputs()[i]->uses)
      if (const auto own = reads_of_operands(*use.node).at(use.index)) reads[i] = reads[i].value_or(0) + *own;
  return reads;
}

OperandReads reads_of_operands(const Node& node) {
  OperandReads reads(node.inputs.size());
  try {
    const auto lowered = lower_group(node);
    if (const auto* why = std::get_if<Decline>(&lowered); why && why->code == "recurrent" && !node.body)
      return OperandReads(node.inputs.size(), 1);
    const auto* group = std::get_if<LoweredGroup>(&lowered);
    if (!group) return reads_inside(node);
    const std::vector<double> by_param = reads_by_element(group->region);
    std::map<const Value*, double> by_value;
    for (size_t param = 0; param < group->operands.size(); ++param)
      by_value[group->operands[param].value] += by_param[param];
    for (size_t i = 0; i < reads.size(); ++i)
      if (const auto at = by_value.find(node.inputs[i]); at != by_value.end()) reads[i] = at->second;
  } catch (const Error& error) {  // an operand that only the whole graph knows
    if (error.diagnostic().name == "internal") throw;
  }
  return reads;
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
  return {[target](const Region& region) { return price_of_region(region, target); }, reads_of_operands,
          traffic_on(target)};
}

}  // namespace opfuse
