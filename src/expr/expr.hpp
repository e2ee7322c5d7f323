// Scalar expressions: the arithmetic one element sees. Operator laws evaluated on the domain `Expr`
// build them; the region interpreter evaluates them; both code generators emit them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dim.hpp"
#include "tensor/dtype.hpp"

namespace opfuse {

enum class ExprOp {
  // leaves
  constant,   ///< value (reals) or integer (integers, booleans)
  read,       ///< the stage's read number `index` at its mapped coordinates
  in_bounds,  ///< boolean: the coordinates of read number `index` lie inside its tensor
  coord,      ///< i64: coordinate of iteration axis `index` (domain axes first, then reduce axes)
  result,     ///< result of reduction number `index` of this stage
  extent,     ///< i64: a Dim, possibly symbolic
  // unary
  neg,
  abs,
  sign,
  exp,
  log,
  sqrt,
  rsqrt,
  reciprocal,
  tanh,
  erf,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  floor,
  ceil,
  round_even,
  is_nan,
  is_inf,
  logical_not,
  bit_not,
  // binary
  add,
  sub,
  mul,
  div,
  mod,
  fmod,
  min,
  max,
  pow,
  lt,
  le,
  gt,
  ge,
  eq,
  ne,
  logical_and,
  logical_or,
  logical_xor,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  // ternary / typed
  select,    ///< args {condition, a, b}
  cast,      ///< to dtype, ONNX rules
  bit_cast,  ///< the operand's bits as dtype
};

struct ExprNode;

/// Immutable, shared. Copying is cheap. A *weak* constant (made from a C++ number inside a law) takes
/// the dtype of the operand it meets; two weak operands stay weak.
class Expr {
 public:
  Expr() = default;
  explicit Expr(double weak_constant);  ///< weak, so laws can write S(0.5)

  static Expr constant(DType dtype, double value);
  static Expr integer(DType dtype, int64_t value);
  static Expr read(int index, DType dtype);
  static Expr in_bounds(int index);
  static Expr coord(int axis);
  static Expr result(int index, DType dtype);
  static Expr extent(Dim dim);
  /// Builds a node, folds constants, checks operand types (E::dtype_mismatch).
  static Expr make(ExprOp op, std::vector<Expr> args);
  static Expr make_cast(Expr x, DType to);
  static Expr make_bit_cast(Expr x, DType to);  ///< the same bits as another type of as many; E::dtype_mismatch

  explicit operator bool() const { return node_ != nullptr; }
  ExprOp op() const;
  DType dtype() const;
  bool weak() const;
  const std::vector<Expr>& args() const;
  int index() const;     ///< read, in_bounds, coord, result
  double value() const;  ///< constant
  int64_t integer_value() const;
  const Dim& dim() const;  ///< extent
  bool is_constant() const { return op() == ExprOp::constant; }
  const ExprNode* node() const { return node_.get(); }  ///< identity, for memo tables only

  std::string text() const;  ///< "max(add(r0, r1), 0)", canonical, parses back
  static Expr parse(std::string_view text);
  bool operator==(const Expr& other) const;  ///< structural

  /// Rebuilds bottom-up; `leaf` maps each leaf (return it unchanged to keep).
  Expr map_leaves(const std::function<Expr(const Expr&)>& leaf) const;
  void visit(const std::function<void(const Expr&)>& each) const;  ///< each distinct node once, operands first

 private:
  std::shared_ptr<const ExprNode> node_;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
};

/// `e` with other operands.
Expr rebuilt(const Expr& e, std::vector<Expr> args);
/// `e` with `to` wherever `from` is.
Expr replaced(const Expr& e, const Expr& from, const Expr& to);
/// Each distinct node once, operands first.
std::vector<Expr> nodes_of(const Expr& e);

std::string_view name_of(ExprOp op);
std::optional<ExprOp> parse_expr_op(std::string_view name);
int arity(ExprOp op);

/// What leaves evaluate to. Reals are doubles; integers and booleans are exact.
struct ScalarValue {
  DType dtype = DType::f64;
  double real = 0;
  int64_t integer = 0;
  double as_real() const { return is_float(dtype) ? real : static_cast<double>(integer); }
  int64_t as_integer() const { return is_float(dtype) ? static_cast<int64_t>(real) : integer; }
};

enum class Precision {
  exact,  ///< reals stay double throughout: the oracle
  typed,  ///< rounds to the declared dtype at every value
};

/// Evaluates one operation on already evaluated operands: the single definition of what each ExprOp
/// means (constant folder, expression interpreter).
ScalarValue evaluate_op(ExprOp op, DType result, const std::vector<ScalarValue>& args, Precision precision);

/// Evaluates an expression; `leaf` supplies read, in_bounds, coord, result, extent.
ScalarValue evaluate(const Expr& e, Precision precision, const std::function<ScalarValue(const Expr&)>& leaf);

}  // namespace opfuse
