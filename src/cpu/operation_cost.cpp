// Cycles of single operations on vectors. What a machine takes for each kind is the target's ([costs]); how much code a
// function has is the generator's, and stands here.
#include "cpu/operation_cost.hpp"

#include "expr/real_ops.hpp"

namespace opfuse {
namespace {

constexpr double kIndexShare = 0.125;  ///< of a quotient of indices: what a sum or a product of them costs

/// 1 + exp(z) below a line: quotient and function are computed together (math/logistic.hpp).
bool is_logistic(const Expr& quotient) {
  const Expr& below = quotient.args()[1];
  return below.op() == ExprOp::add && (below.args()[0].op() == ExprOp::exp || below.args()[1].op() == ExprOp::exp);
}

}  // namespace

/// erf looks a polynomial up, tanh divides, the inverse ones do more than one of the others, sin and cos bring their
/// argument into a quadrant by three products (30.8 us against 9.1 of exp, 256 x 128 values, Sapphire Rapids).
double weight_of_function(ExprOp op) {
  switch (op) {
    case ExprOp::erf:
      return 0.75;
    case ExprOp::log:
      return 1.5;
    case ExprOp::tanh:
    case ExprOp::pow:
      return 2;
    case ExprOp::sin:
    case ExprOp::cos:
      return 3.4;
    case ExprOp::tan:
    case ExprOp::sinh:
    case ExprOp::cosh:
    case ExprOp::asin:
    case ExprOp::acos:
    case ExprOp::atan:
    case ExprOp::asinh:
    case ExprOp::acosh:
    case ExprOp::atanh:
      return 2.5;
    default:
      return 1;
  }
}

double weight_of(const Expr& e) {
  return is_function(e.op()) || e.op() == ExprOp::pow ? weight_of_function(e.op()) : 0;
}

double weight_of_functions(const Expr& value) {
  double sum = 0;
  value.visit([&](const Expr& e) { sum += weight_of(e); });
  return sum;
}

double cost_of_op(const Expr& e, const VectorCosts& costs) {
  if (e.args().empty()) return 0;
  const bool index = !is_float(e.dtype()) && !is_float(e.args().back().dtype());
  switch (e.op()) {
    case ExprOp::div:
      return index ? costs.index_division : is_logistic(e) ? costs.simple : costs.division;
    case ExprOp::mod:
    case ExprOp::fmod:
    case ExprOp::reciprocal:
      return costs.division;
    case ExprOp::sqrt:
    case ExprOp::rsqrt:
      return costs.root;
    case ExprOp::pow:
      return costs.power;
    case ExprOp::erf:
      return costs.erf;
    default:
      if (index) return costs.index_division * kIndexShare;
      return is_function(e.op()) ? costs.function * weight_of_function(e.op()) : costs.simple;
  }
}

}  // namespace opfuse
