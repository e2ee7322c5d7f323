// Expr -> C++ text on one element. Each value that is used twice, or is not small, becomes a statement of its own;
// small ones are written where they are used.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cuda/kernel.hpp"
#include "expr/expr.hpp"

namespace opfuse::cuda {

class ExprText {
 public:
  /// Text of a leaf; of a read: `guard` says when its element may be loaded ("" always).
  using Leaf = std::function<std::string(const Expr&, const std::string& guard)>;
  /// `guarded`: reads whose in_bounds appears somewhere.
  ExprText(Kernel& k, const std::set<int>& guarded, Leaf leaf) : k_(k), guarded_(guarded), leaf_(std::move(leaf)) {}

  /// The value in value_type(dtype), as an operand: a name, a literal or a parenthesized expression.
  std::string emit(const Expr& e, DType dtype);
  std::string emit(const Expr& e) { return emit(e, e.dtype()); }

 private:
  Kernel& k_;
  const std::set<int>& guarded_;
  Leaf leaf_;
  std::map<int, std::string> guards_;  ///< by read
  std::map<const ExprNode*, std::string> memo_;
  std::map<const ExprNode*, int> uses_;

  std::string compute(const Expr& e, DType dtype);
  std::string unary(ExprOp op, DType dtype, const std::string& x);
  std::string binary(const Expr& e, DType dtype);
  std::string half_quotient(const Expr& divisor, const std::string& x, const std::string& y);
  std::string quotient_of(float divisor, const std::string& x, const std::string& y);
  std::string real_binary(ExprOp op, DType dtype, const std::string& x, const std::string& y);
  std::string integer_binary(ExprOp op, DType dtype, const std::string& x, const std::string& y);
  std::string guard_of(int read);
  std::string named(const std::string& text, DType dtype, const std::string& prefix = "v");
  std::string keep(const Expr& e, DType dtype, const std::string& text);
};

std::string literal(DType dtype, double real, int64_t integer);
/// "+", "-" or "*" of integers, which wrap: signed overflow has no meaning in C++.
std::string wrapping_text(DType dtype, const std::string& x, std::string_view op, const std::string& y);
/// ONNX cast between value types.
std::string cast_text(Kernel& k, const std::string& x, DType from, DType to);
/// min / max where a NaN on either side gives NaN.
std::string extremum_text(Kernel& k, bool maximum, const std::string& x, const std::string& y, DType dtype,
                          bool y_is_number);
/// Memory bits <-> value.
std::string from_memory(Kernel& k, DType dtype, const std::string& x);
std::string to_memory(Kernel& k, DType dtype, const std::string& x);

}  // namespace opfuse::cuda
