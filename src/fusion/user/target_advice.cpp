// Verdicts with a capability's code carry in their evidence what the file lacks; alike ones add up. A value between two
// launches is stored and loaded once more than within one, and costs a launch; an operator that runs elsewhere moves
// its operands and results there.
#include "fusion/user/target_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/fail.hpp"
#include "fusion/grouping.hpp"
#include "fusion/user/capability_rules.hpp"

namespace opfuse {
namespace {

class Adviser {
 public:
  Adviser(const Graph& graph, const FusionPlan& plan, const TargetInfo& target, const Capabilities& said)
      : graph_(graph), plan_(plan), target_(target), device_(said.device) {}

  std::vector<Advice> run(const CapabilityRules& rules) {
    const auto of_edge = [](const std::string& code) {  // operators are asked node by node
      return is_capability(code) && code != "no_operator" && code != "operator_condition";
    };
    for (const EdgeVerdict& edge : plan_.edges)
      if (const Value* v = graph_.find_value(edge.tensor); v && edge.group.empty() && of_edge(edge.decline.code))
        if (!edge.decline.evidence.empty() && readers_.emplace(edge.decline.evidence.back(), edge.consumer).second)
          add(edge.decline, 2 * value_bytes(*v, plan_.dims));
    for (const Candidate* c : plan_.missed())
      if (c->decline->code == "precondition")
        add({"precondition", c->decline->message, {fmt::format("what {} needs ({})", c->pattern, c->decline->message)}},
            c->bytes_saved);
    for (const Node* node : graph_.nodes())
      if (auto decline = rules.refuse_operator(*node)) add_operator(*decline, *node);
    std::vector<Advice> all;
    for (auto& [lacks, advice] : found_) all.push_back(std::move(advice));
    std::stable_sort(all.begin(), all.end(),
                     [](const Advice& a, const Advice& b) { return a.microseconds > b.microseconds; });
    return all;
  }

 private:
  const Graph& graph_;
  const FusionPlan& plan_;
  const TargetInfo& target_;
  const DeviceCosts& device_;
  std::map<std::string, Advice> found_;
  std::set<std::pair<std::string, std::string>> readers_;  ///< a node joins one of its operands

  Advice& row_of(const Decline& decline) {
    Advice& row = found_[decline.evidence.back()];
    if (row.edges++ == 0) row.lacks = decline.evidence.back(), row.code = decline.code, row.message = decline.message;
    return row;
  }

  void add(const Decline& decline, int64_t bytes) {
    if (decline.evidence.empty()) return;
    Advice& row = row_of(decline);
    row.bytes += bytes;
    const bool generated = has_generator(target_);
    const double rate = generated ? target_.launch.bytes_per_second : device_.bytes_per_second;
    const double launch = generated ? target_.launch.part_seconds : device_.launch_seconds;
    row.microseconds += 1e6 * ((rate > 0 ? static_cast<double>(bytes) / rate : 0) + launch);
  }

  void add_operator(const Decline& decline, const Node& node) {
    Advice& row = row_of(decline);
    row.operators = true;
    int64_t bytes = 0;
    for (const Value* v : node.inputs)
      if (v && !v->is_constant()) bytes += value_bytes(*v, plan_.dims);
    for (const Value* v : node.outputs) bytes += value_bytes(*v, plan_.dims);
    row.bytes += bytes;
    const bool moves = device_.transfer_bytes_per_second > 0;
    const double rate = moves ? device_.transfer_bytes_per_second : device_.bytes_per_second;
    row.microseconds += 1e6 * ((rate > 0 ? static_cast<double>(bytes) / rate : 0) +
                               (moves ? 2 * device_.transfer_seconds : device_.launch_seconds));
  }
};

}  // namespace

std::vector<Advice> target_advice(const Graph& prepared, const FusionPlan& plan, const TargetInfo& target) {
  if (!capability_rules(target))
    throw fail(E::bad_option, "the file of {} says nothing of what it takes", target.name)
        .hint("opfuse explain --missed ranks what its generator does not fuse");
  return target_advice(prepared, plan, target, capabilities_of(target));
}

std::vector<Advice> target_advice(const Graph& prepared, const FusionPlan& plan, const TargetInfo& target,
                                  const Capabilities& said) {
  return Adviser(prepared, plan, target, said).run(CapabilityRules(target, said));
}

std::string sentence_of(const Advice& advice) {
  const char* const what = advice.operators ? "would run" : "would fuse";
  const char* const unit = advice.operators ? "node" : "edge";
  return fmt::format("{} {} {} {}{}, {:.1f} MB, {:.0f} us", advice.lacks, what, advice.edges, unit,
                     advice.edges == 1 ? "" : "s", static_cast<double>(advice.bytes) / 1e6, advice.microseconds);
}

}  // namespace opfuse
