// Names that a plan uses for nodes, tensors and groups.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/graph.hpp"

namespace opfuse {

/// Unique node names: the first source name, with "#2", "#3" ... where several nodes share it.
class NodeNames {
 public:
  explicit NodeNames(const Graph& graph);
  const std::string& of(const Node* node) const { return names_.at(node); }
  Node* find(const std::string& name) const;  ///< null when there is none

 private:
  std::unordered_map<const Node*, std::string> names_;  // both are looked up, never iterated
  std::unordered_map<std::string, Node*> nodes_;
};

/// "/layer1/layer1.0/conv1/Conv" -> "layer1_layer1_0_conv1_Conv": letters, digits and single underscores.
std::string identifier(std::string_view name);

}  // namespace opfuse
