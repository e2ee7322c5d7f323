// Products count their multiply-adds; what a group reads and stores passes the device's memory once.
#include "driver/placement_costs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "driver/pipeline.hpp"
#include "fusion/grouping.hpp"
#include "ir/body.hpp"
#include "ir/outline.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"
#include "target/capabilities.hpp"

namespace opfuse {
namespace {

double elements_of(const Value* v, const SymbolValues& sizes) {
  return v && v->type.shape.ranked ? static_cast<double>(v->type.shape.elements().evaluate(sizes)) : 0;
}

/// Multiply-adds of the products of a list of nodes.
double products_in(const std::vector<Node*>& nodes, const SymbolValues& sizes) {
  double sum = 0;
  for (const Node* node : nodes) {
    if (node->body && stands_for_body(*node)) sum += products_in(node->body->nodes(), sizes);
    const Value* const weights = node->input(1);
    if (node->body || node->op->kind != OpKind::contraction || !weights || !weights->type.shape.ranked ||
        weights->type.shape.rank() < 2)
      continue;
    const Shape &w = weights->type.shape, &y = node->output()->type.shape;
    const Dim columns = is_a<Conv>(*node) ? w[0] : y.dims.back();
    if (columns.is_constant() && columns.value() > 0)
      sum += elements_of(node->output(), sizes) * elements_of(weights, sizes) / static_cast<double>(columns.value());
  }
  return sum;
}

}  // namespace

SymbolValues nominal_sizes(const Graph& graph) {
  SymbolValues sizes;
  for (const std::string& symbol : graph.symbols()) sizes[symbol] = limits_in_force().priced_size;
  return sizes;
}

/// Sizes that the group's own values have open.
static std::string open_sizes_of(const PlacedGroup& group, const SymbolValues& nominal) {
  std::set<std::string> symbols;
  for (const Node* node : group.nodes)
    for (const Value* v : node->outputs)
      for (const Dim& dim : v->type.shape.dims) dim.collect_symbols(symbols);
  std::string text;
  for (const std::string& symbol : symbols)
    if (const auto at = nominal.find(symbol); at != nominal.end())
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", symbol, at->second);
  return text;
}

/// Microseconds of a group as a target's planner prices it, nothing where it has no single kernel.
static std::optional<double> planned_time(const Graph& graph, const PlacedGroup& group, const TargetInfo& target,
                                          const SymbolValues& sizes) {
  OutlinedCopy copy = outline_copy(graph, group.nodes, {fused_op(), group.candidate->label, "trial"});
  if (!sizes.empty()) copy.graph.bind_dimensions(sizes);
  const auto price = pricing_on(target)(*copy.node);
  const auto* one = std::get_if<GroupPrice>(&price);
  return one ? std::optional(one->microseconds) : std::nullopt;
}

void price_group(PlacedGroup& group, const Graph& graph, const TargetInfo& host, const TargetInfo& device) {
  const SymbolValues sizes = nominal_sizes(graph);
  group.priced_at = open_sizes_of(group, sizes);
  const Capabilities& said = capabilities_of(device);
  DeviceCosts costs = said.device;
  for (const CompositeRow& row : said.composites) {
    if (row.name.text != group.candidate->pattern) continue;
    if (row.multiply_adds_per_second > 0) costs.multiply_adds_per_second = row.multiply_adds_per_second;
    if (row.launch_seconds > 0) costs.launch_seconds = row.launch_seconds;
  }
  const double work = products_in(group.nodes, sizes);
  if (has_generator(device)) {
    group.device_time = planned_time(graph, group, device, sizes).value_or(0);
  } else {
    double bytes = 0;
    for (const Value* v : external_reads(group.nodes)) bytes += static_cast<double>(value_bytes(*v, sizes));
    for (const Value* v : external_results(graph, group.nodes)) bytes += static_cast<double>(value_bytes(*v, sizes));
    group.device_time =
        1e6 * (std::max(work / costs.multiply_adds_per_second, bytes / costs.bytes_per_second) + costs.launch_seconds);
  }
  group.transfer_seconds = costs.transfer_seconds;
  group.transfer_rate = costs.transfer_bytes_per_second;
  group.host_time = planned_time(graph, group, host, sizes)
                        .value_or(1e6 * work /
                                  (host.launch.multiply_adds_per_second *
                                   static_cast<double>(std::max<int64_t>(host.lanes_f32(), 1))));
}

PlacementCosts::PlacementCosts(const Graph& graph, const std::vector<PlacedGroup>& groups)
    : graph_(graph), groups_(groups), sizes_(nominal_sizes(graph)) {
  for (const PlacedGroup& group : groups_)
    for (const Node* node : group.nodes) owner_[node] = &group;
}

bool PlacementCosts::on_device(const Node* node, const PlacedGroup& group, bool there) const {
  const auto at = owner_.find(node);
  if (at == owner_.end()) return false;
  if (at->second == &group) return there;
  return at->second->there && at->second->device == group.device;
}

double PlacementCosts::copies_around(const PlacedGroup& group, bool there) const {
  const auto cost = [&](const Value& v) {
    return 1e6 * (group.transfer_seconds + static_cast<double>(value_bytes(v, sizes_)) / group.transfer_rate);
  };
  double sum = 0;
  std::vector<Value*> values = external_reads(group.nodes);
  for (Value* v : external_results(graph_, group.nodes)) values.push_back(v);
  for (const Value* v : values) {
    if (v->is_constant()) continue;
    const bool made_there = v->producer && on_device(v->producer, group, there);
    bool read_there = false, read_here = graph_.is_output(v);
    for (const Use& use : v->uses) (on_device(use.node, group, there) ? read_there : read_here) = true;
    if (made_there ? read_here : read_there) sum += cost(*v);
  }
  return sum;
}

double PlacementCosts::gain_of_leaving(const PlacedGroup& group) const {
  return (group.device_time + copies_around(group, true)) - (group.host_time + copies_around(group, false));
}

double PlacementCosts::copies_of(const PlacedGroup& group) const {
  return std::max(copies_around(group, true) - copies_around(group, false), 0.0);
}

void settle_places(const Graph& graph, std::vector<PlacedGroup>& groups, std::vector<std::string>& notes) {
  PlacementCosts costs(graph, groups);
  const int64_t most = limits_in_force().placement_rounds;
  int64_t round = 0;
  for (bool moved = true; moved && round < most; ++round) {
    moved = false;
    for (PlacedGroup& group : groups) {
      if (!group.fixed.code.empty() || group.asked) continue;
      const double gain = costs.gain_of_leaving(group);
      if ((group.there && gain > 0) || (!group.there && gain < 0)) group.there = !group.there, moved = true;
    }
    if (moved && round + 1 == most)
      notes.push_back(fmt::format("groups still moved between devices after {} rounds; {}", most,
                                  how_to_raise("placement_rounds")));
  }
  for (PlacedGroup& group : groups)
    if (group.transfer_rate > 0) group.copies = costs.copies_of(group);
}

}  // namespace opfuse
