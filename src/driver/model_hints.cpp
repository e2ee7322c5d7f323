// A node of the file may have become several nodes, a part of one (recomposed), or none (folded): hints follow sources.
//
//     no_fuse "*"       neighbours: what makes its operands, reads its results, or reads an operand of its
//     no_fuse A, B      every node of A with every node of B
//     fuse_with A, B    those of A and B that a value goes between; where there is none, the first of each
#include "driver/model_hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fusion/names.hpp"
#include "onnx/fusion_hints.hpp"

namespace opfuse {
namespace {

using Nodes = std::vector<Node*>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

bool contains(const Nodes& nodes, const Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

bool has(const Pairs& pairs, const std::pair<std::string, std::string>& pair) {
  const auto is = [&](const auto& p) { return p == pair || (p.first == pair.second && p.second == pair.first); };
  return std::any_of(pairs.begin(), pairs.end(), is);
}

Nodes neighbours_of(const Node* node) {
  Nodes found;
  const auto add = [&](Node* n) {
    if (n && n != node && !contains(found, n)) found.push_back(n);
  };
  for (const Value* v : node->inputs) {
    if (!v) continue;
    add(v->producer);
    for (const Use& use : v->is_constant() ? std::vector<Use>{} : v->uses) add(use.node);
  }
  for (const Value* v : node->outputs)
    for (const Use& use : v->uses) add(use.node);
  return found;
}

bool is_edge(const Node* from, const Node* to) {
  return std::any_of(to->inputs.begin(), to->inputs.end(), [&](const Value* v) { return v && v->producer == from; });
}

class Hints {
 public:
  Hints(const Graph& prepared, PlanRequest& request, std::vector<std::string>& notes)
      : names_(prepared), request_(request), notes_(notes) {
    for (Node* node : prepared.nodes())
      for (const Source& source : node->sources) nodes_[source.name].push_back(node);
  }

  void take(const FusionHint& hint) {
    const Nodes& own = nodes_of(hint, hint.node);
    if (hint.with.empty())
      for (Node* node : own) add_all(hint, {node}, neighbours_of(node));
    for (const std::string& other : hint.with) {
      const Nodes& others = nodes_of(hint, other);
      if (own.empty() || others.empty()) continue;
      if (hint.fuse)
        add_joined(hint, own, others);
      else
        add_all(hint, own, others);
    }
  }

 private:
  NodeNames names_;
  PlanRequest& request_;
  std::vector<std::string>& notes_;
  std::map<std::string, Nodes> nodes_;  ///< by their sources

  const Nodes& nodes_of(const FusionHint& hint, const std::string& name) {
    const Nodes& found = nodes_[name];
    if (found.empty())
      notes_.push_back(fmt::format("{} at {}: the prepared graph has no node of \"{}\"", hint.key(), hint.node, name));
    return found;
  }

  void add(const FusionHint& hint, const Node* a, const Node* b) {
    const std::pair pair(names_.of(a), names_.of(b));
    if (has(hint.fuse ? request_.no_fuse : request_.fuse, pair)) {
      notes_.push_back(fmt::format("{} at {}: the request says the opposite of \"{}\" and \"{}\"", hint.key(),
                                   hint.node, pair.first, pair.second));
      return;
    }
    Pairs& pairs = hint.fuse ? request_.fuse : request_.no_fuse;
    if (!has(pairs, pair)) pairs.push_back(pair);
  }

  void add_all(const FusionHint& hint, const Nodes& own, const Nodes& others) {
    for (const Node* a : own)
      for (const Node* b : others)
        if (a != b)
          add(hint, a, b);
        else
          notes_.push_back(fmt::format("{} at {}: \"{}\" is one operator that stands for both", hint.key(), hint.node,
                                       names_.of(a)));
  }

  void add_joined(const FusionHint& hint, const Nodes& own, const Nodes& others) {
    bool any = false;
    for (const Node* a : own)
      for (const Node* b : others)
        if (is_edge(a, b) || is_edge(b, a)) any = true, add(hint, a, b);
    if (!any && own.front() != others.front()) add(hint, own.front(), others.front());
  }
};

}  // namespace

void take_model_hints(const Graph& prepared, PlanRequest& request, std::vector<std::string>& notes) {
  const std::vector<FusionHint> hints = fusion_hints(prepared);
  if (hints.empty()) return;
  const size_t apart = request.no_fuse.size(), joined = request.fuse.size();
  Hints taken(prepared, request, notes);
  for (const FusionHint& hint : hints) taken.take(hint);
  notes.push_back(fmt::format("the model's own opfuse.no_fuse and opfuse.fuse_with: {} pairs apart, {} joined",
                              request.no_fuse.size() - apart, request.fuse.size() - joined));
}

}  // namespace opfuse
