// What a group must store, computed from what it read, and what else it may store where values lie on ties.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "interp/interpreter.hpp"
#include "ir/graph.hpp"

namespace opfuse {

class RoundingTies {
 public:
  /// `fused`: the graph of the program. `tolerance`: of the largest value before a rounding.
  RoundingTies(const Graph& fused, SymbolValues symbols, double tolerance);

  bool has(const std::string& name) const { return by_name_.contains(name); }
  /// The exact value `name`, from those of `known`. Values of `leaves` are read there even if they could be computed.
  Tensor value(const std::string& name, const std::map<std::string, Tensor>& known);
  /// That, then the same with every subset of the group's roundings decided the other way at their ties, the small
  /// subsets first, until `take` returns false. A rounding counts when only operators that take elements one by one
  /// stand between it and `name`; at most eight do.
  void values(const std::string& name, const std::map<std::string, Tensor>& known, const std::set<std::string>& leaves,
              const std::function<bool(const Tensor&)>& take);

 private:
  struct Evaluation;
  Graph graph_;  ///< without bodies
  SymbolValues symbols_;
  double tolerance_;
  std::map<std::string, const Value*> by_name_;
};

}  // namespace opfuse
