// Names after nodes, made unique by a count.
#include "passes/name_values.hpp"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

void name_values(Graph& graph) {
  std::set<std::string> used;
  for (const Value* value : graph.values()) used.insert(value->name);
  for (Value* value : graph.values()) {
    if (!value->name.empty() || (!value->producer && value->uses.empty())) continue;
    const std::string wish = wished_name(*value);
    if (wish.starts_with('#') || wish.empty()) continue;  // the node has no name either
    value->name = wish;
    for (int n = 2; !used.insert(value->name).second; ++n) value->name = fmt::format("{}_{}", wish, n);
  }
}

}  // namespace opfuse
