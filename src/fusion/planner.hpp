// The state that the pattern engine and the rule engine share while a plan is made.
#pragma once

#include <map>

#include "fusion/grouping.hpp"
#include "fusion/plan.hpp"
#include "match/anchor_ops.hpp"

namespace opfuse {

class Planner {
 public:
  Planner(const Graph& graph, const PlanOptions& options);  ///< both are looked at until run() ends
  Planner(const Graph& graph, PlanOptions&& options) = delete;
  FusionPlan run();

  Grouping grouping;
  const PlanOptions& options;
  FusionPlan plan;
  std::map<int, size_t> owner;  ///< group number -> index of its candidate

  size_t limit(int64_t Limits::*field) const { return static_cast<size_t>(options.limits.*field); }
  /// Whether --only/--skip let this pattern act at this node.
  bool enabled(const std::string& pattern, const std::string& node) const;
  /// Everything that must hold before nodes become a group; `ignoring` are groups it would absorb.
  std::optional<Decline> refuse(const std::vector<Node*>& nodes, const std::string& label, const std::string& pattern,
                                const std::vector<int>& ignoring = {}) const;
  std::optional<Decline> too_large(size_t nodes) const;
  /// Its two halves: other groups and cycles; whether it is one kernel.
  /// `convex`: nothing lies between the nodes, which is known.
  std::optional<Decline> refuse_place(const std::vector<Node*>& nodes, const std::vector<int>& ignoring,
                                      bool convex = false) const;
  std::optional<Decline> refuse_lowering(const std::vector<Node*>& nodes, const std::string& label,
                                         const std::string& pattern) const;
  void describe_nodes(Candidate& c, const std::vector<Node*>& nodes) const;
  std::string unique_label(const std::string& module, const Node* root);
  const std::string& candidate_of(int group) const { return plan.candidates[owner.at(group)].id; }
  std::vector<Node*> nodes_named(const std::vector<std::string>& names) const;
  /// The group of a node is an instruction, to which nothing can be added.
  std::optional<Decline> closed(const Node* node) const;

 private:
  void check_selectors() const;
  void check_node(const std::string& name) const;
  void match_named();
  void try_anchor(Node* anchor, int priority);
  void enter(const FusionPattern& pattern, const Match& match, std::optional<Decline> decline);
  std::map<std::string, int> labels_;
  std::vector<AnchorOps> anchors_;  // by pattern
};

/// Groups what no pattern claims, and grows open groups forward; fills the ledger's reasons (by tensor and reader).
class RuleEngine {
 public:
  explicit RuleEngine(Planner& planner) : planner_(planner) {}
  void run();
  /// Two groups, or nodes, and what lies between them become one.
  void join(const std::vector<Node*>& first, const std::vector<Node*>& between, const std::vector<Node*>& second);
  void join(const std::vector<std::vector<Node*>>& units);
  std::string rule_for(const std::vector<Node*>& first, const std::vector<Node*>& second) const;
  /// Names the groups that no pattern named; once, when all are made.
  void label_groups();
  /// Why the edge from `value` to `reader` is not inside a group.
  Decline reason(const Value& value, const Node& reader) const;

 private:
  struct Growth {
    std::vector<Node*> nodes;
    std::vector<int> absorbed;
    std::optional<Decline> decline;
  };
  void grow(Node* seed);
  bool step(std::vector<Node*>& unit, int& group, bool& ahead);
  Growth look_ahead(const std::vector<Node*>& unit, int group, const Growth& first) const;
  void add_operands(Growth& growth, const std::vector<Node*>& unit, size_t limit) const;
  Growth next_growth(const std::vector<Node*>& unit, int group, const Value& result) const;
  std::optional<Decline> admit(const Node& node, const Value& result, bool anchored, bool last) const;
  std::optional<Decline> prefers_other(const Node& node, const std::vector<Node*>& unit, const Growth& growth) const;
  bool commit(std::vector<Node*>& unit, int& group, Growth& growth);
  bool has_blocks() const;
  std::optional<Decline> slower_row(const std::vector<Node*>& unit, const std::vector<Node*>& added,
                                    const std::vector<Node*>& joined) const;
  void merge_units(const std::vector<const std::vector<Node*>*>& units, const std::string& rule);
  void merge(const std::vector<Node*>& nodes, const std::vector<int>& old, const std::string& rule);
  Planner& planner_;
  mutable std::optional<bool> has_blocks_;  ///< asked where a row looks slower
  mutable std::vector<uint32_t> met_;       ///< by position: the last walk of next_growth that met the node
  mutable uint32_t walk_ = 0;
  bool prefer_deeper_ = true;
  std::map<int, Decline> stopped_;  // by value id
};

class Neighbours;

/// `rules` and `neighbours` are null where they did not run.
void fill_ledger(Planner& planner, const RuleEngine* rules, Neighbours* neighbours);

}  // namespace opfuse
