// An expression flattened once and evaluated many times: what interpreters use per element.
#pragma once

#include <functional>
#include <vector>

#include "expr/expr.hpp"

namespace opfuse {

class Evaluator {
 public:
  explicit Evaluator(const Expr& e);
  /// `leaf` supplies read, in_bounds, coord, result and extent. It is asked only for what the result
  /// needs: of a select the chosen branch, so guarded reads happen only in bounds.
  ScalarValue operator()(Precision precision, const std::function<ScalarValue(const Expr&)>& leaf) const;

 private:
  struct Step {
    Expr e;
    std::vector<int> args;
  };
  std::vector<Step> steps_;
};

}  // namespace opfuse
