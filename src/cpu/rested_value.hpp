// Of a row stage: the result that its first pass over the row stores, and that later passes read where it lies instead
// of computing it again (cpu/emit/generic/resting_row.hpp decides; this guesses, before layouts are known).
#pragma once

#include <unordered_map>
#include <vector>

#include "region/region.hpp"

namespace opfuse {

class RestedValue {
 public:
  /// `stage` outlives this.
  explicit RestedValue(const Stage& stage);

  bool found() const { return output_ != nullptr; }
  bool is_of(const StageOutput& output) const { return output_ == &output; }
  /// The pass that computes and stores it.
  size_t reduction() const { return reduction_; }
  /// The same operation, of the same operands.
  bool is(const Expr& e) const;
  /// Nodes of a value that are computed where the rested one is read, that one among them; operands first.
  const std::vector<const Expr*>& nodes_over(const Expr& value) const;

 private:
  const Stage& stage_;
  const StageOutput* output_ = nullptr;
  size_t reduction_ = 0;
  mutable std::unordered_map<const ExprNode*, bool> same_;  ///< known answers of is()
  mutable std::unordered_map<const ExprNode*, std::vector<const Expr*>> over_;
};

}  // namespace opfuse
