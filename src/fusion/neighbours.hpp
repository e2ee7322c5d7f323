// Neighbouring groups become one where the cost model predicts a gain. Kinds of operators decide nothing here: what
// lowers and is generated is legal, what is cheaper as one launch than as two is joined.
#pragma once

#include <array>
#include <map>
#include <set>

#include "fusion/planner.hpp"
#include "fusion/price.hpp"

namespace opfuse {

class Neighbours {
 public:
  Neighbours(Planner& planner, RuleEngine& rules);
  void run();
  /// The groups of two nodes become one, whatever it costs. E::bad_option where that is not legal.
  void force(const std::string& a, const std::string& b);

  /// One launch instead of two (and what lies between them, which costs nothing by itself).
  struct Trial {
    std::optional<Decline> why;  ///< why not; nothing: it is legal and pays
    std::optional<PricePair> price;
  };
  /// The group that makes `value` and the one of `reader`, where these are two.
  Trial of_edge(Value& value, Node& reader);

 private:
  using Nodes = std::vector<Node*>;
  struct Pair {
    Nodes first, between, second;
    Value* value = nullptr;  ///< what goes from one to the other; of siblings: what both read
    bool siblings = false;
    std::optional<bool> convex{};  ///< nothing leads from one to the other but the value; empty: not asked
  };

  Planner& planner_;
  RuleEngine& rules_;
  std::set<const Value*> blocked_;  ///< values that convolutions may want with their channels in blocks; looked up only
  std::set<const Node*> takers_;    ///< attention and rotary embeddings that are one launch; looked up only
  std::set<const Node*> kept_;      ///< movements that they take over; looked up only
  size_t work_ = 0, budget_ = 0;    ///< operands of what was priced, and may be
  bool held_ = false;               ///< a group stopped growing for its size
  struct Counted {                  ///< how often a unit reads what it is given
    std::vector<Node*> nodes;
    std::map<const Value*, std::optional<double>> reads;
  };
  std::map<std::pair<const Node*, size_t>, Counted> counted_units_;          ///< by first node and size
  std::map<std::vector<size_t>, std::variant<GroupPrice, Decline>> prices_;  ///< by positions of the nodes
  std::map<std::vector<size_t>, std::optional<GroupPrice>> parts_;           ///< of those that cannot be a launch
  std::set<std::array<int, 3>> apart_;  ///< pairs that stay two as long as their units are what they are

  const Graph& graph() const { return planner_.grouping.graph(); }
  Nodes unit_of(Node* node) const;
  bool sweep(bool siblings, size_t most_nodes);
  void join_wide_readers();  // wide_readers.cpp
  std::vector<Nodes> readers_of(const Value& value) const;
  bool join_batch(const std::vector<Nodes>& units, size_t begin, size_t end);
  bool stays_apart(const Pair& pair, Trial& trial);
  std::array<int, 3> number_of(const Pair& pair) const;
  void find_convex(std::vector<Pair>& pairs) const;
  std::vector<Pair> pairs_from(Node* node, bool siblings) const;
  std::optional<Pair> pair_between(Node* one, Node* other) const;
  void follow(const Nodes& first, Value* value, const Nodes& between, std::vector<Pair>& found) const;
  bool is_view(Node* node) const;  // view_pairs.cpp
  Nodes views_behind(const Nodes& first) const;
  void add_through_views(const Nodes& first, Value* value, std::vector<Pair>& found) const;
  std::optional<Pair> pair_through(Node* view, Node* reader) const;
  void add_siblings(Value* value, const Nodes& first, std::vector<Pair>& found) const;
  Trial consider(const Pair& pair, bool forced = false, bool about_edge = false);
  std::optional<Decline> unfit(const Pair& pair, bool forced) const;
  std::optional<Decline> unfit_kinds(const Pair& pair) const;
  std::optional<Decline> unfit_candidates(const Pair& pair) const;
  std::vector<size_t> key_of(const Nodes& nodes) const;  // neighbour_prices.cpp
  std::variant<GroupPrice, Decline> price_of(const Nodes& nodes);
  std::optional<GroupPrice> price_apart(const Pair& pair);
  std::optional<GroupPrice> price_beside_attention(const Pair& pair);
  std::optional<GroupPrice> price_of_unit(const Nodes& nodes);
  std::optional<GroupPrice> price_of_parts(const Nodes& nodes);
  const Node* first_concat_of(const Value& value) const;
  GroupPrice price_of_copies(Node& concat);
  double gain(const Pair& pair, const PricePair& price) const;
  double least_gain(const Pair& pair, const PricePair& price) const;
  bool decides_in_blocks(const Pair& pair, const PricePair& price) const;
  void add_factors(PricePair& price, const Value& value, Node& reader);  // edge_factors.cpp
  std::optional<double> reads_of(const Nodes& nodes, const Value& value);
  bool in_blocks(const Pair& pair) const;
  void find_blocked();
  std::optional<Decline> slower(const Pair& pair, const PricePair& price) const;
  void keep_movements();
  bool takes_movements(Node* node);
};

/// A result that is a part of its operand's memory, or whose operands can be parts of its own.
bool costs_nothing(const Node& node);

}  // namespace opfuse
