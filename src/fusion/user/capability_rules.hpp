// What a target's file says it takes, as questions about groups. Every refusal names the row of the file that is
// missing or fails, and what would satisfy it; its code is one of reasons.def, its evidence one sentence for `advise`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fusion/grouping.hpp"
#include "fusion/plan.hpp"
#include "target/target_file.hpp"

namespace opfuse {

/// A row of [[quantize.leave]].
struct LeftByTarget {
  std::string name, why;
  std::string place;  ///< "npu.toml:12"
};

class CapabilityRules {
 public:
  /// Parses conditions and topologies. Mistakes are added to `mistakes`; null: the first is thrown, E::bad_file.
  CapabilityRules(const TargetInfo& target, const Capabilities& said, std::vector<TargetMistake>* mistakes = nullptr);
  ~CapabilityRules();

  /// Why a fused node is none of what the target takes.
  std::optional<Decline> refuse(const Node& fused) const;
  /// Why an operator has no place there at all.
  std::optional<Decline> refuse_operator(const Node& node) const;
  /// Its composite instructions as patterns; they claim nodes before the catalogue.
  const std::vector<FusionPattern>& composites() const;
  bool is_composite(std::string_view pattern) const;
  /// Q/DQ points that the target has no use for are taken out of a plan, with a note in the group.
  void settle_points(const Graph& graph, FusionPlan& plan) const;
  /// Rows of [[quantize.leave]] that keep a group in floating point.
  std::vector<LeftByTarget> left_by(const Grouping& grouping, const Candidate& c) const;
  bool uses_point(std::string_view point) const;

 private:
  struct Rules;
  std::unique_ptr<const Rules> rules_;
};

/// The rules of a target; null where its file says nothing.
std::shared_ptr<const CapabilityRules> capability_rules(const TargetInfo& target);

/// The code of a verdict that a row of a target's file would change.
bool is_capability(std::string_view code);

}  // namespace opfuse
