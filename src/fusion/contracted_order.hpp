// A topological order of a graph whose groups count as one node each, kept while groups are merged. Only what lies
// between the first and the last unit of a set can lie on a path from the set back to it, so questions about a set cost
// what is there, not the whole graph.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "match/matcher.hpp"

namespace opfuse {

class ContractedOrder {
 public:
  /// Members of the unit that a node belongs to; empty when it is a unit by itself.
  using UnitOf = std::function<const std::vector<Node*>&(const Node*)>;

  explicit ContractedOrder(const Matcher& matcher);

  /// A node outside of `nodes`, which are whole units, that depends on them and that `reader`, one of them, depends on.
  struct Between {
    const Node* node = nullptr;  ///< null: there is none
    const Node* reader = nullptr;
  };
  Between between(const std::vector<Node*>& nodes, const UnitOf& unit_of) const;
  /// Of the units of `readers`, each of which reads the unit of `node`: whether one also depends on it by way of
  /// another unit. The same as `between` of each pair of them, by one search for all.
  std::vector<char> depend_around(const Node* node, const std::vector<const Node*>& readers,
                                  const UnitOf& unit_of) const;
  /// `nodes`, between which there is nothing, become one unit.
  void merge(const std::vector<Node*>& nodes, const UnitOf& unit_of);

  size_t visited() const { return visited_; }  ///< nodes looked at so far, the measure of its work

 private:
  const Matcher& matcher_;
  std::vector<size_t> place_;           // by position; equal within a unit
  mutable std::vector<uint32_t> seen_;  // by position: the question that last came by
  mutable uint32_t question_ = 0;
  mutable size_t visited_ = 0;

  size_t place(const Node* node) const { return place_[matcher_.position(node)]; }
  bool mark(const Node* node) const;
  struct Range {
    size_t first, last;
  };
  Range range_of(const std::vector<Node*>& nodes) const;
  std::vector<const Node*> reached(const std::vector<Node*>& nodes, const UnitOf& unit_of, bool forward) const;
};

}  // namespace opfuse
