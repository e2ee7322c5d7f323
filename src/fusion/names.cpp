// Names for plans.
#include "fusion/names.hpp"

#include <cctype>

#include "base/fail.hpp"

namespace opfuse {

NodeNames::NodeNames(const Graph& graph) {
  std::unordered_map<std::string, int> copies;  // the last number tried for a name
  for (Node* node : graph.nodes()) {
    std::string name = node->name();
    if (!nodes_.emplace(name, node).second) {
      int& copy = copies.try_emplace(name, 1).first->second;
      do name = fmt::format("{}#{}", node->name(), ++copy);
      while (!nodes_.emplace(name, node).second);
    }
    names_[node] = name;
  }
}

Node* NodeNames::find(const std::string& name) const {
  auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : it->second;
}

std::string identifier(std::string_view name) {
  std::string result;
  for (char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain)
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  return result.empty() ? "group" : result;
}

}  // namespace opfuse
