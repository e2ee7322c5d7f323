// Names after nodes, made unique by a count, in bodies too: what splits a node reports its parts by their names.
#include "passes/name_values.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/free_names.hpp"

namespace opfuse {

namespace {

std::string port_of(const Use& use) {
  const auto& ports = use.node->op->inputs;
  return ports.empty() ? fmt::format("{}", use.index) : ports[std::min(use.index, ports.size() - 1)].name;
}

std::string wished_name(const Value& value) {
  if (value.producer && value.result == 0) return value.producer->name();
  if (value.producer) return fmt::format("{}:{}", value.producer->name(), value.result);
  return fmt::format("{}.{}", value.uses.front().node->name(), port_of(value.uses.front()));
}

/// `label`: of the node this graph is the body of; empty at the top, where nodes without names leave values unnamed.
void name_in(Graph& graph, const std::string& label, FreeNames& names) {
  for (Value* value : graph.values()) {
    if (!value->name.empty() || (!value->producer && (!label.empty() || value->uses.empty()))) continue;
    std::string wish = wished_name(*value);
    if (wish.starts_with('#') || wish.empty()) {
      if (label.empty()) continue;
      wish = fmt::format("{}/{}", label, value->producer->op->name);
    }
    value->name = names.take(wish);
  }
  for (Node* node : graph.nodes())
    if (node->body) name_in(*node->body, node->label, names);
}

}  // namespace

void name_values(Graph& graph) {
  FreeNames names(graph);
  name_in(graph, {}, names);
}

}  // namespace opfuse
