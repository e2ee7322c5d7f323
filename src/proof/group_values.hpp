// What a group must store: the graph's own operators, in double, on the numbers that the group read.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "interp/interpreter.hpp"
#include "ir/graph.hpp"

namespace opfuse {

class GroupValues {
 public:
  using Known = std::map<std::string, Tensor>;
  /// `fused`: the graph of the program.
  GroupValues(const Graph& fused, SymbolValues symbols);

  bool has(const std::string& name) const { return by_name_.contains(name); }
  DType dtype_of(const std::string& name) const;
  /// The node that computes it, bodies expanded.
  const Node& producer_of(const std::string& name) const;
  /// The value `name` from those of `known`; what no launch stores (a view) is computed.
  Tensor value(const std::string& name, const Known& known) const;
  Tensor value(const Value& wanted, const Known& known) const;  ///< of an operand of producer_of
  /// Every value with a name, of the graph's inputs.
  Known all(const Known& inputs) const;
  /// Values `names`; of `known` only `leaves` are read, all between is computed.
  std::vector<Tensor> results(const std::vector<std::string>& names, const Known& known,
                              const std::set<std::string>& leaves) const;

 private:
  struct Evaluation;
  Graph graph_;  ///< without bodies
  SymbolValues symbols_;
  std::map<std::string, const Value*> by_name_;
};

}  // namespace opfuse
