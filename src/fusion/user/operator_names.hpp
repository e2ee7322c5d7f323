// Which operators a name in a target's file stands for.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse {

/// Operators, and the names that recompositions give.
const std::vector<std::string>& operator_names();

/// "elementwise", "reduction" ...: kinds of operators that may stand for all of their names; "activation".
const std::vector<std::string>& kind_words();

/// Names and kinds, as a question about nodes.
struct OperatorSet {
  std::set<std::string, std::less<>> names;  ///< kinds spelled out
  bool activation = false;                   ///< the eight of the catalogue, with their parameters
  bool has(const Node& node) const;
};

/// Adds what a word stands for; false where there is no such operator.
bool add_operators(OperatorSet& set, const std::string& word);

}  // namespace opfuse
