#include "ir/defined_symbols.hpp"

#include <fmt/format.h>

namespace opfuse {

std::vector<std::string> defined_symbols(const Node& node) {
  if (node.op->kind != OpKind::shape || !find(node.op->default_attrs, kDefines)) return {};
  const AttrMap attrs = node.attr_map();
  const AttrValue* names = find(attrs, kDefines);
  const auto* list = names ? std::get_if<std::vector<std::string>>(names) : nullptr;
  return list ? *list : std::vector<std::string>{};
}

std::set<std::string> defined_symbols(const Graph& graph) {
  std::set<std::string> symbols;
  for (const Node* node : graph.nodes()) {
    if (node->body) symbols.merge(defined_symbols(*node->body));
    for (std::string& symbol : defined_symbols(*node)) symbols.insert(std::move(symbol));
  }
  return symbols;
}

std::set<std::string> all_symbols(const Graph& graph) {
  std::set<std::string> symbols = graph.symbols();
  symbols.merge(defined_symbols(graph));
  return symbols;
}

std::string fresh_symbol(const Graph& graph, const std::string& wished) {
  const std::set<std::string> taken = all_symbols(graph);
  std::string name = wished;
  for (int i = 2; taken.contains(name); ++i) name = fmt::format("{} {}", wished, i);
  return name;
}

}  // namespace opfuse
