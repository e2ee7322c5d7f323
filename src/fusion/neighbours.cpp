// Pairs of groups, in topological order, until no pair gains:
//
//     first -- v -- second                     one launch; v is stored when others read it too
//     first -- v -- [reshape, concat] -- second        what needs no launch by itself comes along
//     x -- first, x -- second                  siblings: x is read once
//
// A group of each pair is the best of those that its first group has, by predicted time. What a pair must hold: it
// lowers and is generated; at most one contraction or window; no value between two groups that a cycle would close;
// predicted faster than apart, with values of four dimensions dense and, where the graph has convolutions, in blocks
// too. Movements next to attention stay for absorb_movements, Q/DQ points stay on their tensors, unless both are in the
// pair.
#include "fusion/neighbours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/fail.hpp"
#include "fusion/node_kind.hpp"
#include "fusion/reasons.hpp"
#include "fusion/rounding_pair.hpp"
#include "ir/outline.hpp"
#include "match/attention.hpp"
#include "match/matcher.hpp"
#include "match/movement.hpp"
#include "ops/concat.hpp"
#include "ops/conv.hpp"
#include "ops/gemm.hpp"
#include "ops/is_a.hpp"
#include "ops/pad.hpp"
#include "ops/resize.hpp"
#include "ops/slice.hpp"
#include "ops/split.hpp"

namespace opfuse {

namespace {

constexpr size_t kLeastPrices = 200'000;  ///< operands that are priced whatever the size of the graph
constexpr size_t kManyNodes = 4'000;      ///< graphs of so many begin with groups of a part of `grown_nodes`
constexpr size_t kFirstPart = 4;

using Nodes = std::vector<Node*>;

bool contains(const Nodes& nodes, const Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

bool any_kind(const Nodes& nodes, std::initializer_list<OpKind> kinds) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node* n) {
    const OpKind kind = kind_of(*n);
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  });
}

/// Sizes and positions that are computed are known to the graph around a group alone; indices of a gather are data.
bool computes_places(const Node& node) {
  const bool places = node.op->moves == Moves::view || node.op->moves == Moves::places || is_a<Resize>(node);
  if (!places || node.op->name.starts_with("gather")) return false;
  const std::vector<Dim>& y = node.output()->type.shape.dims;
  const bool open = std::any_of(y.begin(), y.end(), [](const Dim& d) { return !d.is_constant(); });
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Value* operand = node.inputs[i];
    if (operand && (!operand->is_constant() || (open && !belongs_in_body(*operand)))) return true;
  }
  return false;
}

bool sums_products(const Nodes& nodes) { return any_kind(nodes, {OpKind::contraction, OpKind::window}); }

bool is_quantised(const Node& node) {
  return node.op->name.find("quantize") != std::string::npos || node.op->name.find("integer") != std::string::npos;
}

bool holds_movement_taker(const Node& node) {
  if (operator_name(node) == kAttention || operator_name(node) == kRotaryEmbedding) return true;
  if (!node.body) return false;
  const auto& nodes = node.body->nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return holds_movement_taker(*n); });
}

bool has_unit_steps(const Node& slice) {
  const Value* steps = slice.input(4);
  if (steps == nullptr) return true;
  if (!steps->is_constant()) return false;
  const std::vector<int64_t> values = steps->constant->to_i64();
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 1; });
}

/// Refusals of what can be one launch all the same: --fuse overrules them, or leaving out --no-fuse.
bool is_choice(const std::string& code) {
  static constexpr std::array kChoices = {"claimed",        "scattered_store", "moved_by_attention", "quantised",
                                          "read_elsewhere", "no_fuse",         "two_anchors"};
  return std::find(kChoices.begin(), kChoices.end(), code) != kChoices.end();
}

/// What may be the second of a chain: taps that slide, of a pool or of channels in groups.
bool slides(const Nodes& nodes) {
  return any_kind(nodes, {OpKind::window}) || std::any_of(nodes.begin(), nodes.end(), [](const Node* n) {
           return is_a<Conv>(*n) && n->as<Conv>().group > 1;
         });
}

/// Elements that a product stores one after the other end apart: more than rows change places.
bool scatters(const Nodes& nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node* n) { return kind_of(*n) == OpKind::injective && !moves_rows(*n); });
}

}  // namespace

bool costs_nothing(const Node& node) {
  if (node.body) return false;
  if (node.op->moves == Moves::view) return true;
  return is_a<Split>(node) || is_a<Concat>(node) || (is_a<Slice>(node) && has_unit_steps(node));
}

Neighbours::Neighbours(Planner& planner, RuleEngine& rules) : planner_(planner), rules_(rules) {
  budget_ = kLeastPrices + planner_.limit(&Limits::priced_per_node) * graph().nodes().size();
  find_blocked();
  keep_movements();
}

/// Values of rank 4 next to convolutions and pools, and on through what leaves their channels where they are.
void Neighbours::find_blocked() {
  std::vector<const Value*> open;
  const auto visit = [&](const Value* v) {
    if (v && !v->is_constant() && v->type.shape.ranked && v->type.shape.rank() == 4 && blocked_.insert(v).second)
      open.push_back(v);
  };
  const auto visit_all = [&](const Node* node) {
    for (const Value* v : node->inputs) visit(v);
    for (const Value* v : node->outputs) visit(v);
  };
  const auto keeps_channels = [](const Node* node) {
    return kind_of(*node) == OpKind::elementwise || is_a<Concat>(*node) || is_a<Slice>(*node) || is_a<Split>(*node) ||
           is_a<Pad>(*node) || is_a<Resize>(*node);
  };
  for (const Node* node : graph().nodes()) {
    const OpKind kind = kind_of(*node);
    const bool sums = kind == OpKind::contraction || kind == OpKind::window;
    if (sums && !is_matrix_product(*node)) visit_all(node);
  }
  while (!open.empty()) {
    const Value* v = open.back();
    open.pop_back();
    if (v->producer && keeps_channels(v->producer)) visit_all(v->producer);
    for (const Use& use : v->uses)
      if (keeps_channels(use.node)) visit_all(use.node);
  }
}

bool Neighbours::in_blocks(const Pair& pair) const {
  for (const Nodes* nodes : {&pair.first, &pair.between, &pair.second})
    for (const Node* n : *nodes) {
      const auto blocked = [&](const Value* v) { return blocked_.contains(v); };
      if (std::any_of(n->inputs.begin(), n->inputs.end(), blocked) ||
          std::any_of(n->outputs.begin(), n->outputs.end(), blocked))
        return true;
    }
  return false;
}

/// What runs as several launches loads and stores what they do, as attention does that no pattern claims.
bool Neighbours::takes_movements(Node* node) {
  if (!holds_movement_taker(*node)) return false;
  if (operator_name(*node) == kAttention && planner_.grouping.group_of(node) < 0) return false;
  return std::holds_alternative<GroupPrice>(price_of(unit_of(node)));
}

/// Around attention and rotary embeddings, through movements alone.
void Neighbours::keep_movements() {
  std::vector<const Node*> open;
  for (Node* node : graph().nodes())
    if (takes_movements(node)) {
      takers_.insert(node);
      open.push_back(node);
    }
  const auto visit = [&](const Node* node) {
    if (node && moves_elements(*node) && kept_.insert(node).second) open.push_back(node);
  };
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Value* v : node->inputs)
      if (v) visit(v->producer);
    for (const Value* v : node->outputs)
      for (const Use& use : v->uses) visit(use.node);
  }
}

Neighbours::Nodes Neighbours::unit_of(Node* node) const {
  const int group = planner_.grouping.group_of(node);
  return group >= 0 ? planner_.grouping.nodes_of(group) : Nodes{node};
}

/// Growing a group by single nodes prices it again with each: quadratic in its size. So groups grow to `grown_nodes`
/// first (where there are thousands of nodes in smaller steps), and then whole groups join.
void Neighbours::run() {
  join_wide_readers();
  std::vector<size_t> sizes{planner_.limit(&Limits::grown_nodes), planner_.options.max_nodes};
  if (graph().nodes().size() >= kManyNodes) sizes.insert(sizes.begin(), std::max<size_t>(sizes[0] / kFirstPart, 2));
  for (const size_t most : sizes) {
    held_ = false;
    bool changed = true;
    while (changed) {
      changed = false;
      while (sweep(false, most)) changed = true;
      changed |= sweep(true, most);
    }
    if (!held_) break;
  }
}

bool Neighbours::sweep(bool siblings, size_t most_nodes) {
  bool changed = false;
  for (Node* node : graph().nodes()) {
    if (unit_of(node).front() != node) continue;
    for (bool grown = true; grown;) {
      grown = false;
      if (unit_of(node).size() >= most_nodes) {
        held_ = true;
        break;
      }
      const Pair* best = nullptr;
      double most = 0;
      std::vector<Pair> pairs = pairs_from(node, siblings);
      find_convex(pairs);
      for (const Pair& pair : pairs) {
        Trial trial;
        if (stays_apart(pair, trial)) continue;
        if (const double saved = gain(pair, *trial.price); !best || saved > most) best = &pair, most = saved;
      }
      if (!best) break;
      rules_.join(best->first, best->between, best->second);
      changed = grown = true;
    }
  }
  return changed;
}

/// Else what it costs. Other groups change nothing in prices, and close more cycles, never fewer: a pair is tried once.
bool Neighbours::stays_apart(const Pair& pair, Trial& trial) {
  if (pair.between.empty() && apart_.contains(number_of(pair))) return true;
  if (pair.convex.value_or(true)) trial = consider(pair);
  if (!trial.why && trial.price) return false;
  if (pair.between.empty()) apart_.insert(number_of(pair));
  return true;
}

std::array<int, 3> Neighbours::number_of(const Pair& pair) const {
  const Grouping& grouping = planner_.grouping;
  const auto number = [&](const Node* node) {
    const int group = grouping.group_of(node);
    return group >= 0 ? group : -1 - static_cast<int>(grouping.matcher().position(node));
  };
  return {number(pair.first.front()), number(pair.second.front()), pair.siblings ? 1 : 0};
}

/// Of all pairs of one group with readers, by one search.
void Neighbours::find_convex(std::vector<Pair>& pairs) const {
  std::vector<Pair*> asked;
  std::vector<const Node*> readers;
  for (Pair& pair : pairs)
    if (pair.between.empty() && !pair.siblings && !apart_.contains(number_of(pair)))
      asked.push_back(&pair), readers.push_back(pair.second.front());
  if (asked.size() < 2) return;
  const std::vector<char> cut_off = planner_.grouping.cut_off(asked.front()->first.front(), readers);
  for (size_t i = 0; i < asked.size(); ++i) asked[i]->convex = !cut_off[i];
}

std::vector<Neighbours::Pair> Neighbours::pairs_from(Node* node, bool siblings) const {
  std::vector<Pair> found;
  const Nodes first = unit_of(node);
  if (siblings) {
    for (Value* v : external_reads(first))
      if (!v->is_constant()) add_siblings(v, first, found);
    return found;
  }
  if (first.size() == 1 && costs_nothing(*first.front()) && !is_a<Concat>(*first.front())) return found;
  const std::vector<Value*> results = external_results(graph(), first);
  for (Value* v : results) follow(first, v, {}, found);
  if (!results.empty()) add_through_views(first, results.front(), found);
  return found;
}

void Neighbours::follow(const Nodes& first, Value* value, const Nodes& between, std::vector<Pair>& found) const {
  if (value->uses.size() > planner_.limit(&Limits::priced_operands)) return;
  for (const Use& use : value->uses) {
    if (contains(first, use.node)) continue;
    const Nodes second = unit_of(use.node);
    const bool seen = std::any_of(found.begin(), found.end(),
                                  [&](const Pair& p) { return p.second == second && p.between == between; });
    if (!seen) found.push_back({first, between, second, value});
    const bool passes = second.size() == 1 && costs_nothing(*use.node) && use.node->outputs.size() == 1 &&
                        !graph().is_output(use.node->output());
    if (!passes) continue;
    if (between.size() >= planner_.limit(&Limits::between_nodes)) {
      planner_.plan.too_far.nodes.insert(use.node->id);
      continue;
    }
    Nodes longer = between;
    longer.push_back(use.node);
    follow(first, use.node->output(), longer, found);
  }
}

void Neighbours::add_siblings(Value* value, const Nodes& first, std::vector<Pair>& found) const {
  if (value->uses.size() > planner_.limit(&Limits::sibling_readers)) return;
  for (const Use& use : value->uses) {
    if (contains(first, use.node)) continue;
    const Nodes second = unit_of(use.node);
    if (planner_.grouping.matcher().position(second.front()) < planner_.grouping.matcher().position(first.front()))
      continue;  // found from there
    if (std::any_of(found.begin(), found.end(), [&](const Pair& p) { return p.second == second; })) continue;
    found.push_back({first, {}, second, value, true});
  }
}

/// By a value that goes from one to the other, else through what needs no launch, else as siblings.
std::optional<Neighbours::Pair> Neighbours::pair_between(Node* one, Node* other) const {
  const std::pair<Node*, Node*> ways[] = {{one, other}, {other, one}};
  for (const auto& [from, to] : ways) {
    const Nodes first = unit_of(from), second = unit_of(to);
    if (is_view(from))
      if (auto through = pair_through(from, to)) return through;
    for (Value* v : external_results(graph(), first))
      if (std::any_of(v->uses.begin(), v->uses.end(), [&](const Use& use) { return contains(second, use.node); }))
        return Pair{first, {}, second, v};
  }
  for (const auto& [from, to] : ways)
    for (const bool siblings : {false, true})
      for (const Pair& pair : pairs_from(unit_of(from).front(), siblings))
        if (contains(pair.second, to)) return pair;
  return std::nullopt;
}

void Neighbours::force(const std::string& a, const std::string& b) {
  const NodeNames& names = planner_.grouping.names();
  Node *one = names.find(a), *other = names.find(b);
  if (unit_of(one) == unit_of(other)) return;
  const std::optional<Pair> found = pair_between(one, other);
  const auto refuse = [&](const Decline& why) {
    throw fail(E::bad_option, "\"{}\" and \"{}\" cannot be one launch, {}: {}", a, b, why.code, why.message);
  };
  if (!found) return refuse({"no_edge", "no value goes from one group to the other, nor do both read one", {}});
  const Trial trial = consider(*found, true);
  if (trial.why && trial.why->code != "slower" && trial.why->code != "small_gain") return refuse(*trial.why);
  rules_.join(found->first, found->between, found->second);
  if (!trial.why) return;
  const size_t owner = planner_.owner.at(planner_.grouping.group_of(one));
  planner_.plan.candidates[owner].notes.push_back(
      fmt::format("forced, {}: {}", trial.why->code == "slower" ? "predicted slower" : "predicted gain is small",
                  trial.why->message));
}

Neighbours::Trial Neighbours::of_edge(Value& value, Node& reader) {
  std::optional<Pair> pair;
  if (is_view(value.producer)) pair = pair_through(value.producer, &reader);
  if (!pair) pair = Pair{unit_of(value.producer), {}, unit_of(&reader), &value};
  Trial trial = consider(*pair, false, true);
  if (trial.price && decides_in_blocks(*pair, *trial.price)) {
    trial.price->apart.microseconds = trial.price->apart.blocked_microseconds;
    if (auto& joined = trial.price->joined) joined->microseconds = joined->blocked_microseconds;
  }
  if (trial.price) add_factors(*trial.price, value, reader);
  return trial;
}

Neighbours::Trial Neighbours::consider(const Pair& pair, bool forced, bool about_edge) {
  Trial trial;
  trial.why = unfit(pair, forced);
  if (trial.why && !about_edge) return trial;
  if (work_ > budget_ && !forced) {
    if (!trial.why)
      trial.why = Decline{"prices_spent", fmt::format("{} operands were priced, no more are", budget_), {}};
    return trial;
  }
  std::optional<GroupPrice> apart = price_apart(pair);
  if (apart && trial.why && trial.why->code == "moved_by_attention") apart = price_beside_attention(pair);
  if (!apart) {
    if (!trial.why)
      trial.why = Decline{
          "not_priced",
          fmt::format("{} or {} has no price by itself", describe(*pair.first.back()), describe(*pair.second.front())),
          {}};
    return trial;
  }
  trial.price = PricePair{*apart, std::nullopt};
  if (trial.why && is_choice(trial.why->code))  // a cycle, or another group, leaves nothing to choose
    if (const auto fact = unfit(pair, true); fact && !is_choice(fact->code)) trial.why = fact;
  if (trial.why && !is_choice(trial.why->code)) return trial;
  if (trial.why && trial.why->code == "two_anchors" && !slides(pair.second)) return trial;
  Nodes nodes = pair.first;
  nodes.insert(nodes.end(), pair.between.begin(), pair.between.end());
  nodes.insert(nodes.end(), pair.second.begin(), pair.second.end());
  nodes = planner_.grouping.sorted(std::move(nodes));
  const auto joined = price_of(nodes);
  if (const auto* decline = std::get_if<Decline>(&joined)) {
    if (trial.why && trial.why->code == "two_anchors" && !is_of_setting(decline->code))
      return trial;  // the reason that people know
    trial.why = *decline;
    trial.why->message =
        fmt::format("{} with {}: {}", describe(*pair.first.back()), describe(*pair.second.front()), decline->message);
    return trial;
  }
  trial.price->joined = std::get<GroupPrice>(joined);
  if (!trial.why) trial.why = slower(pair, *trial.price);
  return trial;
}

std::optional<Decline> Neighbours::unfit(const Pair& pair, bool forced) const {
  if (pair.first == pair.second) return Decline{"one_group", "they are one group", {}};
  if (!forced) {
    if (auto why = unfit_kinds(pair)) return why;
    if (auto why = unfit_candidates(pair)) return why;
  }
  Nodes nodes = pair.first;
  nodes.insert(nodes.end(), pair.between.begin(), pair.between.end());
  nodes.insert(nodes.end(), pair.second.begin(), pair.second.end());
  std::vector<int> groups;
  for (const Nodes* unit : {&pair.first, &pair.second}) {
    if (auto closed = planner_.closed(unit->front())) return closed;
    if (const int group = planner_.grouping.group_of(unit->front()); group >= 0) groups.push_back(group);
  }
  return planner_.refuse_place(planner_.grouping.sorted(std::move(nodes)), groups, pair.convex.value_or(false));
}

std::optional<Decline> Neighbours::unfit_kinds(const Pair& pair) const {
  if (!pair.siblings && pair.value->uses.size() > planner_.limit(&Limits::priced_operands))
    return Decline{
        "many_readers", fmt::format("\"{}\" has {} readers", value_name(*pair.value), pair.value->uses.size()), {}};
  const auto together = [&](const Node* n) {
    return contains(pair.first, n) || contains(pair.between, n) || contains(pair.second, n);
  };
  for (const Nodes* nodes : {&pair.first, &pair.between, &pair.second})
    for (const Node* n : *nodes) {
      const OpKind kind = kind_of(*n);
      if (n->inputs.size() > planner_.limit(&Limits::priced_operands))
        return Decline{"many_operands", fmt::format("{} has {} operands", describe(*n), n->inputs.size()), {}};
      if (computes_places(*n))
        return Decline{"dynamic_operand", fmt::format("{} computes where its elements are", describe(*n)), {}};
      if (kind == OpKind::shape || kind == OpKind::opaque || kind == OpKind::composite)
        return Decline{"consumer_kind", fmt::format("{} is {}", describe(*n), name_of(kind)), {}};
      if (is_quantised(*n) && !rounds_within(*n, together))
        return Decline{"quantised", fmt::format("{} stays where codes begin or end", describe(*n)), {}};
      if (kept_.contains(n) || takers_.contains(n))
        return Decline{
            "moved_by_attention", fmt::format("{} becomes part of attention's loads and stores", describe(*n)), {}};
    }
  if (sums_products(pair.first) && sums_products(pair.second))
    return Decline{"two_anchors",
                   fmt::format("{} and {} are both contractions or windows", describe(*pair.first.front()),
                               describe(*pair.second.front())),
                   {}};
  if (sums_products(pair.first) && (scatters(pair.second) || scatters(pair.between)))
    return Decline{"scattered_store",
                   fmt::format("{} would store its tiles where {} puts them", describe(*pair.first.front()),
                               describe(*pair.second.front())),
                   {}};
  if (pair.siblings && (sums_products(pair.first) || sums_products(pair.second)))
    return Decline{"two_anchors", "siblings of which one is a contraction or window", {}};
  return std::nullopt;
}

/// Two named patterns stay two; switched-off rules join nothing.
std::optional<Decline> Neighbours::unfit_candidates(const Pair& pair) const {
  std::vector<std::string> named;
  for (const Nodes* unit : {&pair.first, &pair.second}) {
    const int group = planner_.grouping.group_of(unit->front());
    if (group < 0) continue;
    const Candidate& c = planner_.plan.candidates[planner_.owner.at(group)];
    if (!c.named) continue;
    named.push_back(c.id);
  }
  if (named.size() == 2)
    return Decline{"claimed", fmt::format("{} and {} are named patterns", named[0], named[1]), named};
  const std::string rule = rules_.rule_for(pair.first, pair.second);
  for (const Nodes* unit : {&pair.first, &pair.second})
    for (const Node* n : *unit)
      if (!planner_.enabled(rule, planner_.grouping.names().of(n)))
        return Decline{"disabled", "switched off by --only or --skip", {}};
  // A path node whose value is read elsewhere would be stored for that reader alone.
  for (size_t i = 0; i < pair.between.size(); ++i)
    for (const Value* v : pair.between[i]->outputs)
      for (const Use& use : v->uses)
        if (!contains(pair.second, use.node) && !contains(pair.between, use.node))
          return Decline{"read_elsewhere", fmt::format("\"{}\" is read elsewhere too", value_name(*v)), {}};
  return std::nullopt;
}

}  // namespace opfuse
