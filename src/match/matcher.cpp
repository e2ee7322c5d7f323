// The matcher: an attempt (attempt.hpp) at every anchor. Every refusal is offered to Attempt::fail, which keeps
// the one that came after the most matched nodes: the explanation of a near miss. Nearly all refusals are forgotten, so
// texts are written for those that are kept, and only for callers that ask for them.
#include "match/matcher.hpp"

#include <algorithm>

#include "match/attempt.hpp"

namespace opfuse {

Node* Match::node(const std::string& binding) const {
  auto it = bindings.find(binding);
  return it == bindings.end() ? nullptr : it->second.node;
}
Value* Match::value(const std::string& binding) const {
  auto it = bindings.find(binding);
  return it == bindings.end() ? nullptr : it->second.value;
}

Matcher::Matcher(const Graph& graph) : graph_(graph) {
  if (!graph.nodes().empty()) look_at(graph.nodes().back());
}

/// As far as this node.
void Matcher::look_at(const Node* last) const {
  const auto index = [](const Node* node) { return static_cast<size_t>(node->id); };
  const std::vector<Node*>& nodes = graph_.nodes();
  const auto known = [&] {
    const size_t id = index(last);
    return id < position_.size() && position_[id] < known_ && nodes[position_[id]] == last;
  };
  for (bool done = known(); !done && known_ < nodes.size(); ++known_) {
    const Node* node = nodes[known_];
    if (index(node) >= position_.size()) position_.resize(index(node) + 1), depth_.resize(index(node) + 1);
    size_t deep = 0;
    for (const Value* v : node->inputs)
      if (v && v->producer) deep = std::max(deep, depth_[index(v->producer)] + 1);
    position_[index(node)] = known_;
    depth_[index(node)] = deep;
    done = node == last;
  }
}

MatchResult Matcher::match(const Pattern& pattern, Node* anchor, std::span<const MatchPredicate> where,
                           Detail detail) const {
  Attempt attempt{
      .matcher = *this, .tried = tried_, .pattern = pattern, .anchor = anchor, .where = where, .detail = detail};
  attempt.chain(pattern, pattern.chain().size(), anchor->output(), [&](Value*) { return attempt.finish(); });
  if (attempt.found) return {std::move(attempt.found), {}};
  return {std::nullopt, attempt.partial()};
}

std::vector<Match> Matcher::match_all(const Pattern& pattern, std::span<const MatchPredicate> where) const {
  std::vector<Match> all;
  for (Node* node : graph_.nodes())
    if (MatchResult r = match(pattern, node, where, Detail::codes)) all.push_back(std::move(*r.match));
  return all;
}

}  // namespace opfuse
