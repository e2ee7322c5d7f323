// Finding a pattern in a graph. Q/DQ pairs between two operators of a match are part of it without being in the
// pattern, and a constant may be a dequantised one: a quantised model matches what its float form matches. The anchor
// is the node that makes the last element's value; matching walks from there towards the inputs and backtracks over
// options, repetitions and operand orders.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "match/pattern.hpp"

namespace opfuse {

struct Bound {
  Node* node = nullptr;    ///< bound operator
  Value* value = nullptr;  ///< bound value, or the node's first result
};

/// One place where a pattern holds.
struct Match {
  Node* anchor = nullptr;
  std::vector<Node*> nodes;     ///< consumed, in topological order
  std::vector<Value*> reads;    ///< values from outside (constants too), in order of first reading
  std::vector<Value*> results;  ///< the anchor's value, then values of shared elements that others read
  std::map<std::string, Bound> bindings;
  std::vector<Node*> pairs;        ///< those of `nodes` that are Q/DQ pairs between two elements
  std::vector<std::string> notes;  ///< choices made, e.g. which operand of an add is the residual

  bool has(const std::string& binding) const { return bindings.contains(binding); }
  Node* node(const std::string& binding) const;    ///< null when unbound
  Value* value(const std::string& binding) const;  ///< null when unbound
};

/// A condition on a whole match.
struct MatchPredicate {
  std::string name;
  std::function<std::optional<Decline>(const Match&)> test;
};

struct TraceLine {
  std::string element;  ///< "conv:conv"
  std::string found;    ///< `conv "/conv1/Conv"`, "-" when an optional element is absent
};

/// The furthest an attempt got, and why it stopped.
struct PartialMatch {
  size_t matched = 0;            ///< nodes that fitted
  size_t of = 0;                 ///< nodes of the smallest whole match
  std::vector<TraceLine> trace;  ///< from the anchor towards the inputs
  std::string expected;          ///< the element that did not fit
  Node* at = nullptr;            ///< the node it met, null when none
  Decline decline;
};

struct MatchResult {
  std::optional<Match> match;
  PartialMatch partial;  ///< meaningful when there is no match
  explicit operator bool() const { return match.has_value(); }
};

/// What a refusal tells. Texts cost more than the search; a scan of a graph asks for codes.
enum class Detail {
  codes,  ///< how many nodes fitted, where it stopped, the code of the reason
  texts,  ///< the trace and the reason in words too
};

class Matcher {
 public:
  /// Valid as long as the graph is not changed, or told what was.
  explicit Matcher(const Graph& graph);
  /// The nodes in front of this place are as they were.
  void changed_from(size_t place) { known_ = std::min(known_, place); }

  MatchResult match(const Pattern& pattern, Node* anchor, std::span<const MatchPredicate> where = {},
                    Detail detail = Detail::texts) const;
  /// All matches in topological order of their anchors; they may overlap.
  std::vector<Match> match_all(const Pattern& pattern, std::span<const MatchPredicate> where = {}) const;

  const Graph& graph() const { return graph_; }
  size_t position(const Node* node) const {
    if (known_ < graph_.nodes().size()) look_at(node);
    return position_[static_cast<size_t>(node->id)];
  }
  /// Nodes held against an element so far: the work done.
  size_t tried() const { return tried_; }
  /// Longest path from the graph inputs, in nodes.
  size_t depth(const Node* node) const {
    if (known_ < graph_.nodes().size()) look_at(node);
    return depth_[static_cast<size_t>(node->id)];
  }

 private:
  const Graph& graph_;
  mutable std::vector<size_t> position_, depth_;  // by the node's id
  mutable size_t known_ = 0;                      // so many nodes, the first ones, are in these
  void look_at(const Node* last) const;
  mutable size_t tried_ = 0;
};

/// What a pattern wanted and met, as indented lines:
///     act   relu "/relu"                matched
///     conv  expected conv, found add    op_mismatch: ...
std::string explain(const Pattern& pattern, const MatchResult& result);

}  // namespace opfuse
