#include "ir/free_names.hpp"

#include <fmt/format.h>

namespace opfuse {

FreeNames::FreeNames(const Graph& graph) { collect(graph); }

void FreeNames::collect(const Graph& graph) {
  for (const Value* value : graph.values()) taken_.insert(value->name);
  for (const Node* node : graph.nodes())
    if (node->body) collect(*node->body);
}

std::string FreeNames::take(const std::string& wished) {
  std::string name = wished;
  if (name.empty()) return name;
  for (int n = 2; !taken_.insert(name).second; ++n) name = fmt::format("{}_{}", wished, n);
  return name;
}

}  // namespace opfuse
