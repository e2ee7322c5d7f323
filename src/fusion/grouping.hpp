// Groups while they are being chosen: which node belongs where, and whether one more group keeps the graph acyclic.
#pragma once

#include <optional>
#include <vector>

#include "base/decline.hpp"
#include "fusion/contracted_order.hpp"
#include "fusion/names.hpp"
#include "match/matcher.hpp"

namespace opfuse {

class Grouping {
 public:
  explicit Grouping(const Graph& graph);

  const Graph& graph() const { return matcher_.graph(); }
  const Matcher& matcher() const { return matcher_; }
  const NodeNames& names() const { return names_; }

  size_t visited() const { return order_.visited(); }  ///< by questions of convexity

  int group_of(const Node* node) const { return group_[matcher_.position(node)]; }  ///< -1: none
  const std::vector<Node*>& nodes_of(int group) const { return members_[static_cast<size_t>(group)]; }

  /// Adds a convex group; returns its number. Groups that it absorbs are released before.
  int accept(const std::vector<Node*>& nodes);
  void release(int group);

  /// A node that another group owns, or a read of a value interior to another group. Groups in `ignoring` may overlap.
  std::optional<Decline> overlap(const std::vector<Node*>& nodes, const std::vector<int>& ignoring = {}) const;
  /// Empty when the graph stays acyclic with all accepted groups and this one contracted. Groups that it absorbs lie
  /// in `nodes` as a whole.
  std::optional<Decline> convexity(const std::vector<Node*>& nodes) const;
  /// Of readers of a node's group (or of the node): whether `convexity` of the two groups would be refused.
  std::vector<char> cut_off(const Node* node, const std::vector<const Node*>& readers) const;

  std::vector<Node*> sorted(std::vector<Node*> nodes) const;  ///< topological, without duplicates
  /// Stores and loads that grouping saves.
  int64_t bytes_saved(const std::vector<Node*>& nodes, const SymbolValues& dims) const;

 private:
  Matcher matcher_;
  NodeNames names_;
  std::vector<int> group_;                   // by position
  std::vector<std::vector<Node*>> members_;  // released ones are empty
  ContractedOrder order_;

  const std::vector<Node*>& unit_of(const Node* node) const;
};

/// Bytes of a value with unknown dimensions as 1.
int64_t value_bytes(const Value& value, const SymbolValues& dims);

}  // namespace opfuse
