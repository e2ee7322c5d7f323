// Patterns: topologies as runtime values. They print, list, compose by call and are explained when they decline.
//
//   a >> b             b consumes a as its data operand, and nobody outside the match does
//   op("conv", "c")    one operator (op<Conv>("c") by type); a string names the binding
//   any_op({"relu", ...})  any of these operators
//   any("x")           any value, read from outside         tensor("x")  the same, but not a constant
//   constant("w")      a constant operand                   scalar(6)    a one-element constant near 6
//   maybe(p)           p or nothing                         repeat(p, lo, hi)  p several times
//   one_of({p, q})     the first that holds
//   fork({p, q}) >> join(op)   all branches read one value and meet in op; pass_through() is the empty branch
//   .with(p, q)        the operands beside the data operand, in order; in either order when the operator commutes
//   .result(1)         the operator's second result; elements of one name may take its other ones
//   .shared()          other readers and results are allowed; they are then extra results of the group
//   .where(predicate)  a named condition on the node
//
// The same binding name twice means the same node or value. A composite node answers to its label ("gelu").
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/decline.hpp"
#include "ir/graph.hpp"
#include "ir/value_name.hpp"

namespace opfuse {

/// A named condition: empty result when it holds, else the reason.
struct NodePredicate {
  std::string name;  ///< printed in the pattern, e.g. "kernel 7x7"; empty: not printed
  std::function<std::optional<Decline>(const Node&)> test;
};

enum class ElementKind { op, any, tensor, constant, maybe, repeat, one_of, fork, pass_through };

struct Element;

class Pattern {
 public:
  Pattern() = default;
  explicit Pattern(Element element);

  Pattern with(Pattern side) const;
  Pattern with(Pattern first, Pattern second) const;
  Pattern with(Pattern first, Pattern second, Pattern third) const;
  Pattern shared() const;
  Pattern result(size_t index) const;
  Pattern where(NodePredicate predicate) const;

  const std::vector<std::shared_ptr<const Element>>& chain() const { return chain_; }
  std::string text() const;  ///< "conv:conv [bn:batch_norm] act:{relu|gelu}"
  size_t min_nodes() const;  ///< fewest graph nodes of a match

  friend Pattern operator>>(Pattern first, const Pattern& second);

 private:
  Pattern edit_last(const std::function<void(Element&)>& change) const;
  std::vector<std::shared_ptr<const Element>> chain_;
};

struct Element {
  ElementKind kind = ElementKind::any;
  std::vector<std::string> ops;  ///< op: the accepted operators
  std::string binding;
  std::vector<Pattern> parts;  ///< maybe and repeat: one; one_of and fork: the branches
  std::vector<Pattern> sides;  ///< op: patterns of the other operands
  std::vector<NodePredicate> predicates;
  std::optional<double> value;   ///< constant: what it must be near
  std::optional<size_t> result;  ///< op: which of several; without it only the first may be read
  int lo = 0, hi = 0;
  bool shared = false;
  bool join = false;
  std::string text() const;
};

Pattern op(std::string name, std::string binding = {});
Pattern any_op(std::vector<std::string> names, std::string binding = {});
template <class Op>
Pattern op(std::string binding = {}) {
  return op(Op::spec().name, std::move(binding));
}
Pattern any(std::string binding = {});
Pattern tensor(std::string binding = {});
Pattern constant(std::string binding = {});
Pattern scalar(double value);
Pattern maybe(Pattern part);
Pattern repeat(Pattern part, int lo, int hi);
Pattern one_of(std::vector<Pattern> parts);
Pattern fork(std::vector<Pattern> branches);
Pattern join(const Pattern& op);
Pattern pass_through();

/// How far a scalar constant may be from the one a pattern names, relative to it (half precision of sqrt 2 is 8e-5
/// off).
inline constexpr double kScalarTolerance = 1e-4;

/// The operator a node is for a pattern: a composite's label, else the operator's name.
std::string_view operator_name(const Node& node);
/// Operators whose operands may be exchanged.
bool is_commutative(std::string_view op_name);
/// The value of a one-element constant of real or integer type.
std::optional<double> scalar_constant(const Value* value);
/// `relu "/layer1/relu"`, `graph input "x"`, `constant "w"`: how explanations name things.
std::string describe(const Node& node);
std::string describe(const Value* value);

}  // namespace opfuse
