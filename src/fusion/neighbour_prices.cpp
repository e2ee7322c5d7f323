// What pairs of neighbours cost as one launch and apart. Prices are kept by the positions of a group's nodes.
#include <fmt/format.h>

#include <algorithm>

#include "base/fail.hpp"
#include "fusion/neighbours.hpp"
#include "fusion/node_kind.hpp"
#include "ir/outline.hpp"
#include "ops/concat.hpp"
#include "ops/is_a.hpp"

namespace opfuse {

namespace {

std::string text_of_time(double microseconds) { return fmt::format("{:.1f} us", microseconds); }

bool is_elementwise(const Node* node) { return kind_of(*node) == OpKind::elementwise; }

bool holds_contraction(const std::vector<Node*>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return kind_of(*n) == OpKind::contraction; });
}

bool sums_products(const std::vector<Node*>& nodes) {
  return holds_contraction(nodes) ||
         std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return kind_of(*n) == OpKind::window; });
}

}  // namespace

std::vector<size_t> Neighbours::key_of(const Nodes& nodes) const {
  std::vector<size_t> key;
  for (const Node* n : nodes) key.push_back(planner_.grouping.matcher().position(n));
  return key;
}

std::variant<GroupPrice, Decline> Neighbours::price_of(const Nodes& nodes) {
  std::vector<size_t> key = key_of(nodes);
  const auto at = prices_.find(key);
  if (at != prices_.end()) return at->second;
  for (const Node* n : nodes) work_ += 1 + n->inputs.size();
  const auto price = [&]() -> std::variant<GroupPrice, Decline> {
    try {
      const OutlinedCopy copy = outline_copy(graph(), nodes, {fused_op(), "trial", "trial"});
      return planner_.options.price(*copy.node);
    } catch (const Error& error) {  // alone, the nodes do not know what the graph around them says of an operand
      if (error.diagnostic().name == "internal") throw;
      return Decline{"dynamic_operand", error.diagnostic().message, {nodes.front()->name()}};
    }
  };
  return prices_.emplace(std::move(key), price()).first->second;
}

std::optional<GroupPrice> Neighbours::price_of_unit(const Nodes& nodes) {
  if (nodes.size() == 1 && costs_nothing(*nodes.front())) {
    if (is_a<Concat>(*nodes.front())) return price_of_copies(*nodes.front());
    return GroupPrice{};
  }
  const auto price = price_of(nodes);
  if (const auto* known = std::get_if<GroupPrice>(&price)) return *known;
  const auto [at, fresh] = parts_.emplace(key_of(nodes), std::nullopt);
  if (fresh) at->second = price_of_parts(nodes);
  return at->second;
}

/// Modules that run as several kernels: the sum of their operators, in bodies too.
std::optional<GroupPrice> Neighbours::price_of_parts(const Nodes& nodes) {
  std::optional<GroupPrice> sum;
  for (const Node* node : nodes) {
    if (node->body) {
      const auto inner = price_of_parts(node->body->nodes());
      if (inner) sum = sum.value_or(GroupPrice{}), *sum += *inner;
      continue;
    }
    if (costs_nothing(*node)) continue;
    const auto price = planner_.options.price(*node);
    if (const auto* known = std::get_if<GroupPrice>(&price)) sum = sum.value_or(GroupPrice{}), *sum += *known;
  }
  return sum;
}

/// A value can be a part of one concatenation's memory: of the first that takes it, whoever else reads it before.
const Node* Neighbours::first_concat_of(const Value& value) const {
  const Node* first = nullptr;
  const auto place = [&](const Node* n) { return planner_.grouping.matcher().position(n); };
  for (const Use& use : value.uses)
    if (is_a<Concat>(*use.node) && (!first || place(use.node) < place(first))) first = use.node;
  return first;
}

/// Operands that no launch can store into the result are copied there.
GroupPrice Neighbours::price_of_copies(Node& concat) {
  GroupPrice total;
  if (concat.inputs.size() > planner_.limit(&Limits::priced_operands)) return total;
  const auto whole = price_of({&concat});
  const auto* all = std::get_if<GroupPrice>(&whole);
  const int64_t bytes = std::max<int64_t>(value_bytes(*concat.output(), planner_.options.dims), 1);
  for (const Value* v : concat.inputs) {
    const bool stored =
        v->producer && !(costs_nothing(*v->producer) && !is_a<Concat>(*v->producer)) && first_concat_of(*v) == &concat;
    if (stored || !all) continue;
    const double share = static_cast<double>(value_bytes(*v, planner_.options.dims)) / static_cast<double>(bytes);
    total.microseconds += all->microseconds * share;
    total.blocked_microseconds += all->blocked_microseconds * share;
    total.bytes += 2 * value_bytes(*v, planner_.options.dims);
  }
  return total;
}

std::optional<GroupPrice> Neighbours::price_apart(const Pair& pair) {
  auto first = price_of_unit(pair.first);
  const auto second = price_of_unit(pair.second);
  if (!first || !second) return std::nullopt;
  *first += *second;
  for (Node* node : pair.between)
    if (const auto price = price_of_unit({node})) *first += *price;
  return first;
}

/// A movement next to attention is part of its loads and stores, where it takes no time of its own.
std::optional<GroupPrice> Neighbours::price_beside_attention(const Pair& pair) {
  std::optional<GroupPrice> sum;
  for (const Nodes* nodes : {&pair.first, &pair.between, &pair.second})
    for (Node* node : *nodes) {
      if (kept_.contains(node)) continue;
      const auto price = nodes->size() > 1 ? price_of_unit(*nodes) : price_of_unit({node});
      if (!price) return std::nullopt;
      sum = sum.value_or(GroupPrice{});
      *sum += *price;
      if (nodes->size() > 1) break;
    }
  return sum.value_or(GroupPrice{});
}

double Neighbours::gain(const Pair& pair, const PricePair& price) const {
  const double dense = price.apart.microseconds - price.joined->microseconds;
  if (!in_blocks(pair)) return dense;
  return std::min(dense, price.apart.blocked_microseconds - price.joined->blocked_microseconds);
}

/// What one launch must save at least.
double Neighbours::least_gain(const Pair& pair, const PricePair& price) const {
  if (std::all_of(pair.first.begin(), pair.first.end(), is_elementwise) &&
      std::all_of(pair.second.begin(), pair.second.end(), is_elementwise))
    return 0;  // the same is computed, by a launch less
  const auto computes = [](const Node* n) { return !moves_rows(*n); };
  const bool prologue = holds_contraction(pair.second) && !sums_products(pair.first) &&
                        std::any_of(pair.first.begin(), pair.first.end(), computes);
  return (prologue ? planner_.options.margins.prologue : planner_.options.margins.fusion) * price.apart.microseconds;
}

/// The layout in which one launch gains too little, else the one in which it gains less: both forms are told in it.
bool Neighbours::decides_in_blocks(const Pair& pair, const PricePair& price) const {
  if (!in_blocks(pair)) return false;
  if (!price.joined) return false;
  const double dense = price.apart.microseconds - price.joined->microseconds;
  const double blocked = price.apart.blocked_microseconds - price.joined->blocked_microseconds;
  return dense >= least_gain(pair, price) && blocked < dense;
}

std::optional<Decline> Neighbours::slower(const Pair& pair, const PricePair& price) const {
  const double least = least_gain(pair, price);
  if (gain(pair, price) > least) return std::nullopt;
  const bool blocked = decides_in_blocks(pair, price);
  const double joined = blocked ? price.joined->blocked_microseconds : price.joined->microseconds;
  const double apart = blocked ? price.apart.blocked_microseconds : price.apart.microseconds;
  const bool loses = joined >= apart;
  const std::string bar =
      loses ? "" : fmt::format(", not {:.0f} % less", 100 * least / std::max(price.apart.microseconds, 1e-9));
  return Decline{loses ? "slower" : "small_gain",
                 fmt::format("{} with {} as one launch: predicted {}, apart {}{}; {:.2f} MB instead of {:.2f} MB",
                             describe(*pair.first.back()), describe(*pair.second.front()), text_of_time(joined),
                             text_of_time(apart), bar, 1e-6 * static_cast<double>(price.joined->bytes),
                             1e-6 * static_cast<double>(price.apart.bytes)),
                 {}};
}

}  // namespace opfuse
