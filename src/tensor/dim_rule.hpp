// What must hold between dimensions that are open when a model is compiled: inference and lowering assume it, a run
// checks it once its inputs give the symbols values.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "opfuse/error.hpp"
#include "tensor/dim.hpp"

namespace opfuse {

enum class DimRule {
  equal,         ///< a = b
  differs,       ///< a != b
  at_least,      ///< a >= b
  multiple,      ///< a is a multiple of b, which is not 0
  one_or_equal,  ///< a = 1 or a = b: a stretches to b
  broadcast,     ///< a = b, or one of them is 1 and stretches
};

struct DimRelation {
  DimRule rule = DimRule::equal;
  Dim a, b;
  std::string what;  ///< a sentence about a and b: "the inner dimensions of the operands are equal"
};

std::set<std::string> symbols_of(const DimRelation& relation);
/// Whether the relation holds whatever the symbols are (extents: they are not negative); nothing when that depends.
std::optional<bool> settled(const DimRelation& relation);
bool holds(const DimRelation& relation, const SymbolValues& symbols);
/// "N = M, or one of them is 1"
std::string text_of(const DimRelation& relation);

/// What some node needs, with what a message says about that node.
struct DimConstraint {
  DimRelation relation;
  std::string node, op;
  std::vector<std::string> operands;
};

/// What a user reads about a constraint that these sizes break: E::shape_mismatch with the node, its operands, the
/// sizes.
Error broken(const DimConstraint& constraint, const SymbolValues& symbols);
/// E::shape_mismatch for the first one that does not hold. Every symbol of them must have a value.
void check(const std::vector<DimConstraint>& constraints, const SymbolValues& symbols);

/// Some dimension may be 1 and stretch.
bool any_stretches(const std::vector<DimConstraint>& constraints);
/// Some dimension that is open beside the symbols in `fixed` is 1 at these sizes, and stretches. Sizes that are not
/// given are taken not to.
bool stretches(const std::vector<DimConstraint>& constraints, const SymbolValues& symbols, const SymbolValues& fixed);

/// States what the shapes of the node being inferred rely on. A relation that cannot hold is E::shape_mismatch, one
/// that depends on symbols goes to the innermost recorder of this thread; without one it is forgotten.
void assume(DimRule rule, const Dim& a, const Dim& b, std::string_view what);

/// Receives what is assumed while it lives.
class DimRecorder {
 public:
  explicit DimRecorder(std::vector<DimRelation>& into);
  ~DimRecorder();
  DimRecorder(const DimRecorder&) = delete;
  DimRecorder& operator=(const DimRecorder&) = delete;

 private:
  std::vector<DimRelation>* outer_;
};

/// The dimension is not negative for any extents.
bool surely_not_negative(const Dim& dim);

}  // namespace opfuse
