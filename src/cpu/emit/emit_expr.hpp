// Expr -> IR on scalars or vectors. Values that do not depend on the lane axis stay scalar and are
// broadcast where they meet a vector, so uniform parts of an expression cost one lane.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "cpu/emit/kernel.hpp"
#include "expr/expr.hpp"

namespace opfuse::cpu {

class ExprEmitter {
 public:
  using Leaf = std::function<Value*(const Expr&)>;
  /// `below_zero`: of arguments of exp, whether they are known not to be above 0; null: of none. `jumps`: a choice that
  /// all lanes make alike may compute one arm alone; the emitted code is then several blocks.
  using Known = std::function<bool(const Expr&)>;
  ExprEmitter(Kernel& k, Leaf leaf, Known below_zero = {}, bool jumps = false)
      : k_(k), leaf_(std::move(leaf)), below_zero_(std::move(below_zero)), jumps_(jumps) {}
  /// Whole numbers that are the same wherever this emitter's code runs.
  using Number = std::function<std::optional<int64_t>(const Expr&)>;
  void know(Number number) { number_ = std::move(number); }

  /// The value in value_type(dtype): weak constants take `dtype`.
  Value* emit(const Expr& e, DType dtype);
  Value* emit(const Expr& e) { return emit(e, e.dtype()); }

 private:
  Kernel& k_;
  Leaf leaf_;
  Known below_zero_;
  bool jumps_;
  Number number_;
  std::map<const ExprNode*, Value*> memo_;

  Value* compute(const Expr& e, DType dtype);
  Value* constant(const Expr& e, DType dtype);
  Value* select(const Expr& e, DType dtype);
  Value* jump(Value* condition, const Expr& e, DType dtype);
  Value* unary(ExprOp op, DType dtype, Value* x);
  Value* real_binary(ExprOp op, Value* x, Value* y);
  Value* integer_binary(ExprOp op, DType dtype, Value* x, Value* y);
  Value* integer_pow(bool is_unsigned, Value* x, Value* y);
  Value* binary(const Expr& e, DType dtype);
  Value* activation_by_table(const Expr& e);
  Value* number_of_code(const Expr& e);
  Value* compare(ExprOp op, DType dtype, Value* x, Value* y);
};

/// ONNX cast between value types.
Value* emit_cast(Kernel& k, Value* x, DType from, DType to);
/// Broadcasts whichever is scalar.
void unify(Kernel& k, Value*& x, Value*& y);
/// min / max where a NaN on either side gives NaN; `y_is_number`: y is known not to be NaN.
Value* emit_extremum(Kernel& k, bool maximum, Value* x, Value* y, bool y_is_number);

}  // namespace opfuse::cpu
