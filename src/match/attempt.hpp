// One attempt to match a pattern at an anchor (matcher.cpp): what was taken and bound so far, the refusal to report.
// attempt.cpp searches, attempt_fits.cpp holds nodes against elements, attempt_result.cpp makes the match.
#pragma once

#include <memory>
#include <set>
#include <tuple>

#include "match/matcher.hpp"

namespace opfuse {

/// Calls on with the value that feeds what has been matched.
using Next = std::function<bool(Value*)>;

struct Attempt {
  const Matcher& matcher;
  size_t& tried;
  const Pattern& pattern;
  Node* anchor;
  std::span<const MatchPredicate> where;
  Detail detail;

  struct Taken {
    Node* node;
    const Element* element;
  };
  /// What a line of the trace says: a Q/DQ pair without an element, an absent option without a node.
  struct Step {
    const Element* element;
    const Node* node;
  };
  /// The refusal kept so far.
  struct Furthest {
    size_t matched = 0;
    std::vector<Step> trace;
    const Element* element = nullptr;  ///< null: `condition`
    std::string condition;
    Node* at = nullptr;
    Decline decline;
  };
  std::vector<Taken> nodes;
  std::vector<std::pair<std::string, Bound>> bindings;
  std::vector<Step> trace;
  std::vector<std::pair<const Node*, const Value*>> choices;  ///< operands that were tried first
  std::shared_ptr<const Furthest> best;
  size_t best_score = 0;  // 0: nothing failed yet
  std::optional<Match> found;
  /// Repetitions of the outermost chain that were tried and refused for reasons that other nodes taken before would
  /// not change: element, repetition, value, nodes taken.
  std::set<std::tuple<size_t, int, const Value*, size_t>> refused;
  size_t dependent = 0;  ///< refusals so far that depend on the nodes taken

  // Undo everything after this point of the search.
  struct Mark {
    size_t nodes, bindings, trace, choices;
  };
  Mark mark() const { return {nodes.size(), bindings.size(), trace.size(), choices.size()}; }
  void undo(const Mark& m) {
    nodes.resize(m.nodes);
    bindings.resize(m.bindings);
    trace.resize(m.trace);
    choices.resize(m.choices);
  }

  /// Offers a refusal. `why` writes it as {code, message, evidence}; `extra`: nodes that fitted beyond those taken;
  /// `half`: the operator fitted, one of its conditions did not.
  template <class Why>
  bool fail(const Element* e, Node* at, const char* code, const Why& why, size_t extra = 0, bool half = false) {
    return keep(e, {}, at, extra, half, [&] { return detail == Detail::texts ? why() : Decline{code, {}, {}}; });
  }
  /// The same, of a condition that has said why.
  bool fail(const Element* e, std::string condition, Node* at, Decline decline, size_t extra = 0, bool half = false) {
    return keep(e, std::move(condition), at, extra, half, [&] { return std::move(decline); });
  }
  template <class Why>
  bool keep(const Element* e, std::string condition, Node* at, size_t extra, bool half, const Why& why) {
    const size_t matched = nodes.size() + extra, score = 2 * matched + (half ? 2 : 1);
    if (score <= best_score) return false;
    best_score = score;
    best = std::make_shared<const Furthest>(Furthest{matched, trace, e, std::move(condition), at, why()});
    return false;
  }

  // The search.
  bool chain(const Pattern& p, size_t end, Value* v, const Next& k);
  bool repeated(const Element& e, int done, Value* v, const Next& k, size_t outer);
  bool operation(const Element& e, Value* v, const Next& k);
  bool direct(const Element& e, Value* v, const Next& k);
  bool sides(const Element& e, Node& node, size_t data, size_t done, const Next& k);
  bool join(const Pattern& p, size_t end, const Element& e, Value* v, const Next& k);
  bool branches(const Element& fork, Node& node, const std::vector<size_t>& order, size_t done, Value* start,
                const Next& k);
  std::vector<size_t> data_operands(const Node& node, size_t sides);

  // What elements ask of nodes and values.
  bool bind(const Element& e, Node* node, Value* value);
  bool value(const Element& e, Value* v);
  bool near(const Element& e, Value* v);
  bool accept(const Element& e, Value* v, Node*& node);
  bool fits_alone(const Element& e, Node& node);
  bool interior(const Element& e, Node& node);
  bool fits_operands(const Element& e, Node& node);
  bool take(const Element& e, Node* node);

  // The match, or why there is none.
  bool finish();
  bool escape(const Value& value, const Element& e, const std::vector<Node*>& inside);
  Decline escaping(const Value& value, const std::vector<Node*>& inside) const;
  std::vector<std::string> notes() const;
  PartialMatch partial() const;
};

}  // namespace opfuse
