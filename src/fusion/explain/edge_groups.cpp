// Alike: the same reason between the same kinds of operators. A group's sentence is that of its first edge.
#include "fusion/explain/edge_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "fusion/grouping.hpp"
#include "fusion/names.hpp"
#include "fusion/reasons.hpp"
#include "ir/located.hpp"
#include "match/pattern.hpp"

namespace opfuse {

namespace {

bool runs_apart(const EdgeVerdict& e) {
  if (e.executed.empty()) return e.group.empty();
  return e.executed == kTwoLaunches || e.executed == kCopy;
}

/// By name; the first of each.
std::unordered_map<std::string_view, const Value*> named_values(const Graph& graph) {
  std::unordered_map<std::string_view, const Value*> values;
  for (const Value* v : graph.values()) values.emplace(v->name, v);
  return values;
}

int64_t bytes_between(const Value* v) { return v ? 2 * value_bytes(*v, {}) : 0; }

/// ONNX's name where opfuse has none of its own.
std::string operator_of(const Node& node) {
  return node.op == opaque_op() ? source_operator(node) : std::string(operator_name(node));
}

std::string megabytes(int64_t bytes) {
  return bytes >= 100'000 ? fmt::format("{:.1f} MB", 1e-6 * static_cast<double>(bytes))
                          : fmt::format("{:.1f} kB", 1e-3 * static_cast<double>(bytes));
}

std::string text_of_factors(const PricePair& price) {
  std::string text = fmt::format("  growth {:.3g}: elements of the consumer for each of the value", price.growth);
  if (price.recompute) text += fmt::format("; each is read {:.3g} times", *price.recompute);
  return text + "\n";
}

}  // namespace

std::vector<EdgeGroup> edge_groups(const Graph& graph, const FusionPlan& plan) {
  const NodeNames names(graph);
  const auto values = named_values(graph);
  std::vector<EdgeGroup> groups;
  for (const EdgeVerdict& e : plan.edges) {
    const Node *producer = names.find(e.producer), *consumer = names.find(e.consumer);
    if (!producer || !consumer || !runs_apart(e)) continue;
    const std::string from = operator_of(*producer), to = operator_of(*consumer);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const EdgeGroup& g) {
      return g.code == e.decline.code && g.producer == from && g.consumer == to;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {e.decline.code, from, to, {}});
    group->edges.push_back(&e);
    const auto value = values.find(e.tensor);
    if (value != values.end()) group->bytes += bytes_between(value->second);
    if (!e.price || !e.price->joined) continue;
    group->has_time = true;
    group->microseconds += e.price->apart.microseconds - e.price->joined->microseconds;
  }
  // What would gain first, by how much; then what cannot be one launch, by the bytes between; what would lose last.
  const auto rank = [](const EdgeGroup& g) { return !g.has_time ? 1 : g.microseconds > 0 ? 0 : 2; };
  std::stable_sort(groups.begin(), groups.end(), [&](const EdgeGroup& a, const EdgeGroup& b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return rank(a) == 1 ? a.bytes > b.bytes : a.microseconds > b.microseconds;
  });
  return groups;
}

std::string text_of(const EdgeGroup& group) {
  const EdgeVerdict& first = *group.edges.front();
  std::string text = fmt::format("APART    {} x {} -> {}   {}   {}", group.edges.size(), group.producer, group.consumer,
                                 group.code.empty() ? first.executed : group.code, megabytes(group.bytes));
  if (group.has_time)
    text += fmt::format(", as one launch predicted {:.1f} us {}", std::abs(group.microseconds),
                        group.microseconds < 0 ? "slower" : "faster");
  text += fmt::format("\n  \"{}\" -> \"{}\": {}\n", first.producer, first.consumer, first.decline.message);
  const std::string change = change_for(first);
  return text + "  " + (change == kNoChangeFlips ? "no change flips it" : "to change it: " + change) + "\n";
}

std::string text_of_edges(const Graph& graph, const FusionPlan& plan, const std::string& a, const std::string& b) {
  std::string text;
  for (const EdgeVerdict& e : plan.edges) {
    const bool here = (e.producer == a && e.consumer == b) || (e.producer == b && e.consumer == a);
    if (!here) continue;
    text += fmt::format("\"{}\" -> \"{}\" through \"{}\", {}\n", e.producer, e.consumer, e.tensor,
                        megabytes(bytes_between(graph.find_value(e.tensor))));
    if (!e.executed.empty())
      text += fmt::format("  executed: {}{}\n", e.executed, e.by.empty() ? "" : " (" + e.by + ")");
    else if (!e.group.empty())
      text += fmt::format("  in {}\n", e.group);
    if (e.price) {
      text += fmt::format("  apart: {:.1f} us, {}\n", e.price->apart.microseconds, megabytes(e.price->apart.bytes));
      text += e.price->joined ? fmt::format("  one launch: {:.1f} us, {}\n", e.price->joined->microseconds,
                                            megabytes(e.price->joined->bytes))
                              : "  one launch: not legal\n";
      if (e.price->at_best)
        text += fmt::format("  a kernel of both would save {:.1f} us at most\n",
                            e.price->apart.microseconds - e.price->at_best->microseconds);
      text += text_of_factors(*e.price);
    }
    if (e.decline.code.empty()) continue;
    text += fmt::format("  {}: {}\n", e.decline.code, e.decline.message);
    for (const std::string& line : e.decline.evidence) text += "    " + line + "\n";
    text += "  change: " + change_for(e) + "\n";
  }
  return text;
}

}  // namespace opfuse
