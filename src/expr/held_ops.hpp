// Which operations an expression is made of: nodes keep it, so it is known without a walk.
#pragma once

#include <cstdint>

#include "expr/expr.hpp"

namespace opfuse {

/// A set of operations.
class ExprOps {
 public:
  constexpr ExprOps(ExprOp op) : bits_(uint64_t{1} << static_cast<unsigned>(op)) {}  // NOLINT: implicit by design
  /// `first`, `last` and what is listed between them.
  static constexpr ExprOps between(ExprOp first, ExprOp last) {
    ExprOps ops = first;
    for (auto op = static_cast<unsigned>(first); op <= static_cast<unsigned>(last); ++op)
      ops.bits_ |= uint64_t{1} << op;
    return ops;
  }
  constexpr ExprOps operator|(ExprOps other) const { return other.bits_ |= bits_, other; }
  constexpr bool meets(ExprOps other) const { return (bits_ & other.bits_) != 0; }

 private:
  uint64_t bits_;
};
static_assert(static_cast<unsigned>(ExprOp::bit_cast) < 64);

/// One of these is in it, itself included.
bool holds(const Expr& e, ExprOps ops);

/// What takes more than one instruction per vector is in it: a function or a power.
inline bool calls_function(const Expr& e) {
  return holds(e, ExprOps::between(ExprOp::exp, ExprOp::atanh) | ExprOp::pow);
}

}  // namespace opfuse
