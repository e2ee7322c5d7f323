// Names for values that a rewrite adds: a model may have any name already, and what is made for one value may be made
// for the next.
#pragma once

#include <set>
#include <string>

#include "ir/graph.hpp"

namespace opfuse {

class FreeNames {
 public:
  explicit FreeNames(const Graph& graph);  ///< all that values have there and in bodies are taken
  /// `wished`, or "wished_2" and so on where that is taken; takes it. Nothing stays nothing.
  std::string take(const std::string& wished);

 private:
  void collect(const Graph& graph);
  std::set<std::string> taken_;
};

}  // namespace opfuse
