// The rule engine. A unit (a chosen group or a single node) grows forward to the immediate post-dominator of its
// result: everything on the way must be elementwise over the same shape, so that it can run while the result is
// stored. A diamond therefore fuses whole or not at all.
//
//     conv -- a --.                       unit {conv}, result read by a and b; post-dominator: the add
//          \      add -- ...              grows to {conv, a, b, add}
//           - b --'
//
// A transpose that makes images channels-last, or back, joins the unit it alone reads: the store goes elsewhere, and
// what follows sees the other shape. Only between two of them a norm takes both, and can then run in place.
//
// Legality is asked of several steps at once, up to as many nodes as the unit has (`look_ahead`): asked at each step, a
// chain would be lowered as often as it has nodes. Where all together are refused, the steps are taken one by one.
//
// Elementwise units may also end in a reduction ("row"): the reduction reads them as its prologue. Nothing else takes
// a prologue: a convolution or pool would compute it once per tap. Where two anchored units meet in one node, the
// deeper one gets it; a second round lets the other try.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fusion/node_kind.hpp"
#include "fusion/planner.hpp"
#include "ir/outline.hpp"
#include "ops/conv.hpp"
#include "ops/is_a.hpp"

namespace opfuse {

namespace {

bool is_anchored(const std::vector<Node*>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return is_anchor(kind_of(*n)); });
}

bool contains(const std::vector<Node*>& nodes, const Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

std::string rule_of(const std::vector<Node*>& nodes) {
  bool reduction = false;
  for (const Node* n : nodes) {
    const OpKind kind = kind_of(*n);
    if (kind == OpKind::contraction || kind == OpKind::window) return "epilogue";
    reduction |= kind == OpKind::reduction;
  }
  return reduction ? "row" : "map";
}

std::string module_of(const std::vector<Node*>& nodes) {
  std::string name = "fused";
  for (const Node* n : nodes) {
    const std::string part = "_" + identifier(operator_name(*n));
    if (name.size() + part.size() > 60) return name + "_etc";
    name += part;
  }
  return name;
}

// The node that names a rule group: its anchor, else its first node.
const Node* root_of(const std::vector<Node*>& nodes) {
  for (const Node* n : nodes)
    if (is_anchor(kind_of(*n))) return n;
  return nodes.front();
}

}  // namespace

void RuleEngine::run() {
  for (prefer_deeper_ = true;; prefer_deeper_ = false) {
    for (Node* node : planner_.grouping.graph().nodes()) grow(node);
    if (!prefer_deeper_) break;
  }
}

void RuleEngine::label_groups() {
  for (auto& [group, index] : planner_.owner) {
    Candidate& c = planner_.plan.candidates[index];
    if (!c.named) c.label = planner_.unique_label(c.module, root_of(planner_.grouping.nodes_of(group)));
  }
}

// A unit is grown when its last node is visited, so each unit gets its turn once per round.
void RuleEngine::grow(Node* seed) {
  int group = planner_.grouping.group_of(seed);
  std::vector<Node*> unit = group >= 0 ? planner_.grouping.nodes_of(group) : std::vector<Node*>{seed};
  if (unit.back() != seed) return;
  bool ahead = planner_.options.only.empty() && planner_.options.skip.empty();  // those name single steps
  while (step(unit, group, ahead)) {
  }
}

bool RuleEngine::step(std::vector<Node*>& unit, int& group, bool& ahead) {
  const Graph& graph = planner_.grouping.graph();
  const std::vector<Value*> results = external_results(graph, unit);
  auto stop = [&](const Decline& decline) {
    for (const Value* v : results) stopped_[v->id] = decline;
    return false;
  };
  if (results.size() != 1)
    return stop({"several_results", fmt::format("{} results of the group are read outside", results.size()), {}});
  const Value& result = *results.front();
  if (graph.is_output(&result))
    return stop(
        {"graph_output", fmt::format("\"{}\" is a graph output, so it is stored anyway", value_name(result)), {}});
  if (result.uses.empty()) return false;
  if (auto closed = planner_.closed(unit.back())) return stop(*closed);
  const OpKind kind = kind_of(*unit.back());
  const bool turned = unit.size() == 1 && turns_around_norm(*unit.back());
  if (!is_anchored(unit) && kind != OpKind::elementwise && !turned)
    return stop(
        {"producer_kind", fmt::format("{} is {}, which takes no epilogue", describe(*unit.back()), name_of(kind)), {}});
  Growth growth = next_growth(unit, group, result);
  if (growth.decline) return stop(*growth.decline);
  if (ahead) {
    Growth further = look_ahead(unit, group, growth);
    if (further.nodes.size() > growth.nodes.size()) {
      if (commit(unit, group, further)) return true;
      ahead = false;
    }
  }
  if (commit(unit, group, growth)) return true;
  return stop(*growth.decline);
}

/// `first` and the steps behind it while they take elementwise nodes only.
RuleEngine::Growth RuleEngine::look_ahead(const std::vector<Node*>& unit, int group, const Growth& first) const {
  constexpr size_t kAtOnce = 8;  // nodes that a small unit may reach
  const Grouping& g = planner_.grouping;
  const size_t limit = std::min(std::max(2 * unit.size(), kAtOnce),
                                std::min(planner_.options.max_nodes, planner_.limit(&Limits::grown_nodes)));
  const auto joined = [&](std::vector<Node*> nodes, const Growth& growth) {
    nodes.insert(nodes.end(), growth.nodes.begin(), growth.nodes.end());
    return g.sorted(std::move(nodes));
  };
  Growth all = first;
  if (!is_anchored(unit))
    add_operands(all, unit, std::min(planner_.options.max_nodes, planner_.limit(&Limits::grown_nodes)));
  std::vector<Node*> nodes = joined(unit, all);
  while (nodes.size() < limit && kind_of(*nodes.back()) == OpKind::elementwise) {
    const std::vector<Value*> results = external_results(g.graph(), nodes);
    if (results.size() != 1 || g.graph().is_output(results.front()) || results.front()->uses.empty()) break;
    const Growth next = next_growth(nodes, group, *results.front());
    if (next.decline || nodes.size() + next.nodes.size() > limit) break;
    if (std::any_of(next.nodes.begin(), next.nodes.end(),
                    [](const Node* n) { return kind_of(*n) != OpKind::elementwise; }))
      break;
    all.nodes.insert(all.nodes.end(), next.nodes.begin(), next.nodes.end());
    all.absorbed.insert(all.absorbed.end(), next.absorbed.begin(), next.absorbed.end());
    nodes = joined(std::move(nodes), next);
  }
  return all;
}

/// Of a node of many operands, those that elementwise nodes make for it alone: one by one, it would be lowered with
/// each.
void RuleEngine::add_operands(Growth& growth, const std::vector<Node*>& unit, size_t limit) const {
  constexpr size_t kMany = 8;
  const Grouping& g = planner_.grouping;
  const Node& node = *growth.nodes.back();
  if (node.inputs.size() <= kMany || kind_of(node) != OpKind::elementwise) return;
  for (const Value* v : node.inputs) {
    if (unit.size() + growth.nodes.size() >= limit) return;
    Node* maker = v ? v->producer : nullptr;
    if (!maker || v->is_constant() || g.group_of(maker) >= 0 || contains(unit, maker) || contains(growth.nodes, maker))
      continue;
    if (kind_of(*maker) != OpKind::elementwise || maker->outputs.size() != 1 || g.graph().read_count(v) != 1 ||
        v->type.shape != node.output()->type.shape)
      continue;
    growth.nodes.push_back(maker);
  }
}

RuleEngine::Growth RuleEngine::next_growth(const std::vector<Node*>& unit, int group, const Value& result) const {
  const Grouping& g = planner_.grouping;
  const bool anchored = is_anchored(unit);
  Growth growth;
  std::vector<Node*> pending;  // last to first
  const auto later = [&](const Node* x, const Node* y) { return g.matcher().position(x) > g.matcher().position(y); };
  met_.resize(g.graph().nodes().size());
  ++walk_;
  const auto meet = [&](const Node* n) { return std::exchange(met_[g.matcher().position(n)], walk_) != walk_; };
  const auto push_readers = [&](const std::vector<Node*>& of) {
    for (const Value* v : external_results(g.graph(), of))
      for (const Use& use : v->uses)
        if (meet(use.node)) pending.insert(std::upper_bound(pending.begin(), pending.end(), use.node, later), use.node);
  };
  for (const Node* n : unit) meet(n);
  push_readers(unit);
  while (true) {
    Node* const node = pending.back();
    pending.pop_back();
    const bool last = pending.empty();
    growth.decline = admit(*node, result, anchored, last);
    if (!growth.decline) growth.decline = prefers_other(*node, unit, growth);
    if (growth.decline) return growth;
    std::vector<Node*> taken{node};
    if (const int other = g.group_of(node); other >= 0 && other != group) {
      taken = g.nodes_of(other);
      growth.absorbed.push_back(other);
    }
    growth.nodes.insert(growth.nodes.end(), taken.begin(), taken.end());
    for (const Node* n : taken)
      if (!meet(n)) std::erase(pending, n);
    if (last || pending.empty()) return growth;
    if (growth.nodes.size() > planner_.options.max_nodes) {
      growth.decline = {"too_large", fmt::format("no common reader within {} nodes", planner_.options.max_nodes), {}};
      return growth;
    }
    for (const Value* v : external_results(g.graph(), taken))
      if (g.graph().is_output(v)) {
        growth.decline = {"graph_output", fmt::format("\"{}\" on the way is a graph output", value_name(*v)), {}};
        return growth;
      }
    push_readers(taken);
  }
}

std::optional<Decline> RuleEngine::admit(const Node& node, const Value& result, bool anchored, bool last) const {
  const Grouping& g = planner_.grouping;
  const OpKind kind = kind_of(node);
  const int other = g.group_of(&node);
  if (auto closed = planner_.closed(&node)) return closed;
  if (node.inputs.size() > planner_.limit(&Limits::priced_operands))
    return Decline{"many_operands", fmt::format("{} has {} operands", describe(node), node.inputs.size()), {}};
  if (other >= 0 && kind != OpKind::contraction && kind != OpKind::window) {
    const Candidate& c = planner_.plan.candidates[planner_.owner.at(other)];
    if (anchored && is_anchored(g.nodes_of(other)))
      return Decline{
          "two_anchors", fmt::format("{} belongs to {}, which has an anchor of its own", describe(node), c.id), {c.id}};
    const bool appended = std::find(c.epilogue.begin(), c.epilogue.end(), g.names().of(&node)) != c.epilogue.end();
    // A norm takes elementwise operators in front of it; a group with Q/DQ points keeps the tensor they are on.
    const bool norm = kind == OpKind::reduction && !anchored && last && c.points.empty() && node.input(0) == &result &&
                      g.nodes_of(other).front() == &node;
    if (c.named && !norm && (anchored || !appended))
      return Decline{"claimed", fmt::format("{} belongs to {}", describe(node), c.id), {c.id}};
  }
  if (prefer_deeper_ && anchored && turns_around_norm(node))
    return Decline{"joins_norm", fmt::format("{} is turned back after the norm that reads it", describe(node)), {}};
  if (anchored && last && turns_channels(node)) return std::nullopt;
  const bool row = kind == OpKind::reduction && !anchored && last && node.input(0) == &result;
  if (kind != OpKind::elementwise && !row) {
    if (kind == OpKind::contraction || kind == OpKind::window)
      return anchored ? Decline{"two_anchors", fmt::format("{} is {} of its own", describe(node), name_of(kind)), {}}
                      : Decline{"prologue_recompute",
                                fmt::format("{} reads each element many times; computing it there would repeat it",
                                            describe(node)),
                                {}};
    if (kind == OpKind::injective)
      return Decline{"moves_elements", fmt::format("{} moves elements (injective)", describe(node)), {}};
    return Decline{"consumer_kind", fmt::format("{} is {}", describe(node), name_of(kind)), {}};
  }
  if (!row && node.output()->type.shape != result.type.shape)
    return Decline{"shape_changes",
                   fmt::format("{} computes {} from {}", describe(node), node.output()->type.shape.text(),
                               result.type.shape.text()),
                   {}};
  return std::nullopt;
}

std::optional<Decline> RuleEngine::prefers_other(const Node& node, const std::vector<Node*>& unit,
                                                 const Growth& growth) const {
  if (!prefer_deeper_ || !is_anchored(unit)) return std::nullopt;
  const Grouping& g = planner_.grouping;
  auto rank = [&](const Node* n) { return std::pair(g.matcher().depth(n), g.matcher().position(n)); };
  for (const Value* v : node.inputs) {
    if (!v || !v->producer || contains(unit, v->producer) || contains(growth.nodes, v->producer)) continue;
    const int other = g.group_of(v->producer);
    const std::vector<Node*> nodes = other >= 0 ? g.nodes_of(other) : std::vector<Node*>{v->producer};
    if (!is_anchored(nodes) || g.graph().read_count(v) != 1 || v->type.shape != node.output()->type.shape) continue;
    if (rank(v->producer) > rank(unit.back()))
      return Decline{"other_operand",
                     fmt::format("{} is fused with its deeper operand {}", describe(node), describe(*v->producer)),
                     {}};
  }
  return std::nullopt;
}

bool RuleEngine::commit(std::vector<Node*>& unit, int& group, Growth& growth) {
  Grouping& g = planner_.grouping;
  std::vector<Node*> nodes = unit;
  nodes.insert(nodes.end(), growth.nodes.begin(), growth.nodes.end());
  nodes = g.sorted(std::move(nodes));
  std::vector<int> ignoring = growth.absorbed;
  if (group >= 0) ignoring.push_back(group);
  const auto no = [&](Decline d) { return growth.decline = std::move(d), false; };
  if (auto decline = planner_.too_large(nodes.size())) return no(std::move(*decline));
  if (nodes.size() > planner_.limit(&Limits::grown_nodes))
    return no({"grown_nodes", fmt::format("the group would have {} nodes", nodes.size()), {}});
  const std::string rule = rule_of(nodes);
  if (!planner_.enabled(rule, g.names().of(growth.nodes.back())))
    return no({"disabled", fmt::format("rule {} is switched off by --only or --skip", rule), {}});
  if (external_results(g.graph(), nodes).size() != 1)
    return no({"several_results", "the group would have several results that are read outside", {}});
  if (g.bytes_saved(nodes, planner_.options.dims) <= g.bytes_saved(unit, planner_.options.dims))
    return no({"no_gain", "no bytes would be saved", {}});
  if (auto decline = planner_.refuse(nodes, module_of(nodes), rule, ignoring)) return no(std::move(*decline));
  if (auto decline = slower_row(unit, growth.nodes, nodes)) return no(std::move(*decline));
  merge(nodes, ignoring, rule);
  group = g.group_of(nodes.front());
  unit = std::move(nodes);
  return true;
}

/// Where there are convolutions, values of four dimensions may have their channels in blocks.
bool RuleEngine::has_blocks() const {
  if (!has_blocks_) {
    const auto& nodes = planner_.grouping.graph().nodes();
    has_blocks_ = std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return is_a<Conv>(*n); });
  }
  return *has_blocks_;
}

/// A reduction computes what stands in front of it at each of its reads; a running sum reads an element often.
std::optional<Decline> RuleEngine::slower_row(const std::vector<Node*>& unit, const std::vector<Node*>& added,
                                              const std::vector<Node*>& joined) const {
  const auto reduces = [](const Node* n) { return kind_of(*n) == OpKind::reduction; };
  const auto any = [](const std::vector<Node*>& nodes, const auto& is) {
    return std::any_of(nodes.begin(), nodes.end(), is);
  };
  // rows that are stored turned; a norm that is turned on both sides runs as its operand lies
  const bool turns = any(unit, reduces) && !turns_around_norm(*unit.front()) &&
                     any(added, [](const Node* n) { return turns_channels(*n); });
  if (!planner_.options.price || (!turns && !any(added, reduces))) return std::nullopt;
  // channels in blocks lie together wherever their axis is: nothing is turned, which the model does not know
  if (unit.size() == 1 && turns_around_norm(*unit.back()) && has_blocks()) return std::nullopt;
  const Grouping& g = planner_.grouping;
  const auto price_of = [&](const std::vector<Node*>& nodes) -> std::optional<GroupPrice> {
    const auto price =
        planner_.options.price(*outline_copy(g.graph(), g.sorted(nodes), {fused_op(), "trial", "trial"}).node);
    const auto* known = std::get_if<GroupPrice>(&price);
    return known ? std::optional(*known) : std::nullopt;
  };
  const auto one = price_of(joined), first = price_of(unit), second = price_of(added);
  if (!one || !first || !second) return std::nullopt;
  GroupPrice apart = *first;
  apart += *second;
  if (one->microseconds <= apart.microseconds) return std::nullopt;
  return Decline{"slower",
                 fmt::format("{} with {} as one launch: predicted {:.1f} us, apart {:.1f} us", describe(*unit.back()),
                             describe(*added.back()), one->microseconds, apart.microseconds),
                 {}};
}

std::string RuleEngine::rule_for(const std::vector<Node*>& first, const std::vector<Node*>& second) const {
  if (rule_of(second) == "epilogue" && rule_of(first) == "map") return "prologue";
  std::vector<Node*> nodes = first;
  nodes.insert(nodes.end(), second.begin(), second.end());
  return rule_of(nodes);
}

void RuleEngine::join(const std::vector<Node*>& first, const std::vector<Node*>& between,
                      const std::vector<Node*>& second) {
  merge_units({&first, &between, &second}, rule_for(first, second));
}

void RuleEngine::join(const std::vector<std::vector<Node*>>& units) {
  std::vector<const std::vector<Node*>*> parts;
  for (const auto& unit : units) parts.push_back(&unit);
  merge_units(parts, rule_for(units.front(), units.back()));
}

void RuleEngine::merge_units(const std::vector<const std::vector<Node*>*>& units, const std::string& rule) {
  Grouping& g = planner_.grouping;
  std::vector<Node*> nodes;
  std::vector<int> old;
  for (const auto* part : units) {
    nodes.insert(nodes.end(), part->begin(), part->end());
    if (part->empty()) continue;
    if (const int group = g.group_of(part->front()); group >= 0) old.push_back(group);
  }
  merge(g.sorted(std::move(nodes)), old, rule);
}

// One candidate remains for the merged group: a named one keeps its identity, rule groups take the union's.
void RuleEngine::merge(const std::vector<Node*>& nodes, const std::vector<int>& old, const std::string& rule) {
  Grouping& g = planner_.grouping;
  std::optional<size_t> index;
  for (int o : old)
    if (!index || planner_.plan.candidates[planner_.owner.at(o)].named) index = planner_.owner.at(o);
  std::vector<QdqPoint> points;  // of modules that become part of another
  for (int o : old) {
    if (Candidate& merged = planner_.plan.candidates[planner_.owner.at(o)]; planner_.owner.at(o) != *index) {
      points.insert(points.end(), merged.points.begin(), merged.points.end());
      merged.id.clear();  // dropped at the end
    }
    planner_.owner.erase(o);
    g.release(o);
  }
  if (!index) {
    index = planner_.plan.candidates.size();
    planner_.plan.candidates.push_back({.named = false, .apply = true});
  }
  Candidate& c = planner_.plan.candidates[*index];
  planner_.owner[g.accept(nodes)] = *index;
  // A point is a place in the graph, where a pair ends groups: what grows over it takes nothing away.
  c.points.insert(c.points.end(), points.begin(), points.end());
  if (c.named) {
    std::vector<Node*> core = planner_.nodes_named(c.nodes);
    for (const Node* n : nodes) {
      const std::string& name = g.names().of(n);
      if (!contains(core, n) && std::find(c.epilogue.begin(), c.epilogue.end(), name) == c.epilogue.end())
        c.epilogue.push_back(name);
    }
  } else {
    c.pattern = rule;
    c.module = module_of(nodes);
    c.id = c.pattern + "@" + g.names().of(nodes.back());
  }
  planner_.describe_nodes(c, nodes);
}

Decline RuleEngine::reason(const Value& value, const Node& reader) const {
  if (auto it = stopped_.find(value.id); it != stopped_.end()) return it->second;
  return {"not_tried", fmt::format("no rule joins {} and {}", describe(&value), describe(reader)), {}};
}

}  // namespace opfuse
