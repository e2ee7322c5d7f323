// A group against the rows of a target's file:
//
//     x -- [prologue] -- anchor -- slot -- slot -- .. -- y
//
// The anchor is the first product, window or reduction; of a group without one, its first operator. What it depends on
// is its prologue, all else its epilogue, which walks the slots in their order: a slot takes up to `most` operators,
// and none before it comes again. The first thing that does not fit is the verdict.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "fusion/node_kind.hpp"
#include "fusion/user/capability_rows.hpp"

namespace opfuse {
namespace {

Match bound(const Node& op, const Node* anchor) {
  Match match;
  match.bindings["op"] = {const_cast<Node*>(&op), op.output()};
  if (anchor) match.bindings["anchor"] = {const_cast<Node*>(anchor), anchor->output()};
  return match;
}

std::optional<Decline> first_unmet(const std::vector<MatchPredicate>& where, const Match& match) {
  for (const MatchPredicate& predicate : where)
    if (auto decline = predicate.test(match)) return decline;
  return std::nullopt;
}

/// Operators that a group depends on, seen from its anchor.
std::set<const Node*> before(const Node& anchor) {
  std::set<const Node*> found;
  std::vector<const Node*> pending{&anchor};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (const Value* v : node->inputs)
      if (v && v->producer && found.insert(v->producer).second) pending.push_back(v->producer);
  }
  return found;
}

bool is_whole(const Shape& operand, const Shape& result) {
  if (!operand.ranked || !result.ranked || operand.rank() != result.rank()) return false;
  for (size_t i = 1; i < result.rank(); ++i)
    if (operand[i] != result[i]) return false;
  return true;
}

/// What an operator of an epilogue reads besides what the group has made.
std::optional<std::string> wrong_operand(const Node& node, const std::string& allowed) {
  if (allowed == "any") return std::nullopt;
  for (const Value* v : node.inputs) {
    if (!v || v->producer || (v->type.shape.ranked && v->type.shape.elements() == Dim(1))) continue;
    if (allowed == "none") return fmt::format("reads {} besides", v->type.text());
    if (!is_whole(v->type.shape, node.output()->type.shape))
      return fmt::format("reads {}, which is not of the shape of its result", v->type.text());
  }
  return std::nullopt;
}

std::string words_of(const std::vector<ParsedSlot>& slots) {
  std::vector<std::string> words;
  for (const ParsedSlot& slot : slots) words.push_back(slot.words);
  return slots.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", then "));
}

/// The walk of one epilogue.
class Slots {
 public:
  Slots(const ParsedCapabilities& rules, const ParsedAnchor& row, const Node& anchor)
      : rules_(rules), row_(row), anchor_(anchor) {}

  std::optional<Decline> take(const Node& node) {
    std::optional<Decline> unmet;
    for (size_t i = at_; i < row_.epilogue.size(); ++i) {
      const ParsedSlot& slot = row_.epilogue[i];
      if (!slot.ops.has(node) || (i == at_ && used_ >= slot.most)) continue;
      auto why = misfit(node, slot);
      if (!why) return count(i, node);
      if (!unmet) unmet = std::move(why);
    }
    return unmet ? unmet : refusal(node);
  }

 private:
  const ParsedCapabilities& rules_;
  const ParsedAnchor& row_;
  const Node& anchor_;
  size_t at_ = 0;
  int64_t used_ = 0, taken_ = 0;

  std::optional<Decline> misfit(const Node& node, const ParsedSlot& slot) const {
    std::string why;
    if (const auto operand = wrong_operand(node, slot.operand))
      why = fmt::format("it {}", *operand);
    else if (auto unmet = first_unmet(slot.where, bound(node, &anchor_)))
      why = unmet->message;
    else
      return std::nullopt;
    return Decline{"epilogue_condition",
                   fmt::format("{} takes {} behind {} ({}), but not {}: {}", rules_.target, operator_name(node),
                               operator_name(anchor_), row_.place, describe(node), why),
                   {fmt::format("any {} in the epilogue of {}", operator_name(node), operator_name(anchor_))}};
  }

  std::optional<Decline> count(size_t slot, const Node& node) {
    used_ = slot == at_ ? used_ + 1 : 1;
    at_ = slot;
    if (row_.most_epilogue == 0 || ++taken_ <= row_.most_epilogue) return std::nullopt;
    return too_long(node, row_.most_epilogue);
  }

  Decline too_long(const Node& node, int64_t most) const {
    return {"epilogue_length",
            fmt::format("{} applies at most {} of such operators behind {} ({}); {} is one more", rules_.target, most,
                        operator_name(anchor_), row_.place, describe(node)),
            {fmt::format("a longer epilogue of {}", operator_name(anchor_))}};
  }

  Decline refusal(const Node& node) const {
    for (size_t i = 0; i < row_.epilogue.size() && i <= at_; ++i) {
      const ParsedSlot& slot = row_.epilogue[i];
      if (!slot.ops.has(node)) continue;
      if (i == at_) return too_long(node, slot.most);
      return {"epilogue_order",
              fmt::format("{} applies {} behind {} ({}), so not {} there", rules_.target, words_of(row_.epilogue),
                          operator_name(anchor_), row_.place, describe(node)),
              {fmt::format("{} after {} in the epilogue of {}", operator_name(node), row_.epilogue[at_].words,
                           operator_name(anchor_))}};
    }
    return {"epilogue_operator",
            fmt::format("{} applies {} behind {} ({}), not {}", rules_.target, words_of(row_.epilogue),
                        operator_name(anchor_), row_.place, describe(node)),
            {fmt::format("{} in the epilogue of {}", operator_name(node), operator_name(anchor_))}};
  }
};

std::optional<Decline> judge_prologue(const ParsedCapabilities& rules, const ParsedAnchor& row, const Node& anchor,
                                      const std::vector<const Node*>& nodes) {
  int64_t most = row.most_prologue;
  for (const ParsedSlot& slot : row.prologue)
    if (row.most_prologue == 0) most += slot.most;
  for (const Node* node : nodes) {
    const auto takes = [&](const ParsedSlot& slot) {
      return slot.ops.has(*node) && !wrong_operand(*node, slot.operand) &&
             !first_unmet(slot.where, bound(*node, &anchor));
    };
    if (most-- > 0 && std::any_of(row.prologue.begin(), row.prologue.end(), takes)) continue;
    return Decline{"prologue_operator",
                   fmt::format("{} takes {} in front of {} ({}), not {}", rules.target, words_of(row.prologue),
                               operator_name(anchor), row.place, describe(*node)),
                   {fmt::format("{} in the prologue of {}", operator_name(*node), operator_name(anchor))}};
  }
  return std::nullopt;
}

Decline no_anchor(const ParsedCapabilities& rules, const Node& anchor) {
  return {"no_anchor",
          fmt::format("{} has no [[anchor]] for {}", rules.target, describe(anchor)),
          {fmt::format("an anchor for {}", operator_name(anchor))}};
}

std::optional<Decline> judge_around(const ParsedCapabilities& rules, const ParsedAnchor& row, const Node& anchor,
                                    const Graph& body) {
  if (auto unmet = first_unmet(row.where, bound(anchor, nullptr)))
    return Decline{"anchor_condition",
                   fmt::format("{} ({}), {}: {}", rules.target, row.place, describe(anchor), unmet->message),
                   {fmt::format("any {} as an anchor", operator_name(anchor))}};
  const std::set<const Node*> first = before(anchor);
  std::vector<const Node*> prologue, epilogue;
  for (const Node* node : body.nodes())
    if (node != &anchor) (first.contains(node) ? prologue : epilogue).push_back(node);
  if (auto decline = judge_prologue(rules, row, anchor, prologue)) return decline;
  Slots slots(rules, row, anchor);
  for (const Node* node : epilogue)
    if (auto decline = slots.take(*node)) return decline;
  return std::nullopt;
}

}  // namespace

std::optional<Decline> judge_operator(const ParsedCapabilities& rules, const Node& node) {
  if (rules.operators.empty()) return std::nullopt;
  std::optional<Decline> unmet;
  for (const ParsedOperator& row : rules.operators) {
    if (!row.ops.has(node)) continue;
    const auto why = first_unmet(row.where, bound(node, nullptr));
    if (!why) return std::nullopt;
    unmet = Decline{"operator_condition",
                    fmt::format("{} ({}), {}: {}", rules.target, row.place, describe(node), why->message),
                    {fmt::format("any {}", operator_name(node))}};
  }
  if (unmet) return unmet;
  return Decline{"no_operator",
                 fmt::format("{} is not in {}'s operators", describe(node), rules.target),
                 {fmt::format("the operator {}", operator_name(node))}};
}

std::optional<Decline> judge_group(const ParsedCapabilities& rules, const Graph& body) {
  if (body.nodes().empty() || (rules.anchors.empty() && rules.generates)) return std::nullopt;
  const auto is_one = [](const Node* n) { return is_anchor(kind_of(*n)); };
  const auto found = std::find_if(body.nodes().begin(), body.nodes().end(), is_one);
  const Node& anchor = found == body.nodes().end() ? *body.nodes().front() : **found;
  std::optional<Decline> first;
  for (const ParsedAnchor& row : rules.anchors) {
    if (!row.ops.has(anchor)) continue;
    auto decline = judge_around(rules, row, anchor, body);
    if (!decline) return std::nullopt;
    if (!first) first = std::move(decline);
  }
  return first ? first : no_anchor(rules, anchor);
}

std::optional<Decline> judge_limits(const ParsedCapabilities& rules, const Node& fused) {
  const auto over = [&](const char* what, int64_t is, int64_t limit) -> std::optional<Decline> {
    if (limit == 0 || is <= limit) return std::nullopt;
    return Decline{"target_limit",
                   fmt::format("{} allows {} = {}, the group has {}", rules.target, what, limit, is),
                   {fmt::format("a larger limit of {}", what)}};
  };
  const GroupLimits& limits = rules.limits;
  int64_t operands = 0, rank = 0, elements = 0, scratch = 0;
  const auto see = [&](const Value* v) {
    if (!v || !v->type.shape.ranked) return;
    rank = std::max(rank, static_cast<int64_t>(v->type.shape.rank()));
    if (const Dim count = v->type.shape.elements(); count.is_constant()) elements = std::max(elements, count.value());
  };
  for (const Value* v : fused.inputs) operands += v != nullptr, see(v);
  for (const Value* v : fused.outputs) see(v);
  const auto nodes = fused.body ? static_cast<int64_t>(fused.body->nodes().size()) : 1;
  if (fused.body)  // what one anchor makes for the next has to lie somewhere
    for (const Node* node : fused.body->nodes())
      for (const Value* v : node->inputs)
        if (v && v->producer && is_anchor(kind_of(*node)) && kind_of(*node) != OpKind::elementwise) {
          const Dim count = v->type.shape.ranked ? v->type.shape.elements() : Dim(0);
          if (count.is_constant()) scratch += count.value() * static_cast<int64_t>(byte_size(v->type.dtype));
        }
  for (auto& decline : {over("nodes", nodes, limits.nodes), over("operands", operands, limits.operands),
                        over("rank", rank, limits.rank), over("elements", elements, limits.elements),
                        over("scratch_bytes", scratch, limits.scratch_bytes)})
    if (decline) return decline;
  return std::nullopt;
}

}  // namespace opfuse
