// Evaluates flattened expressions. The common real operations are done in place; everything else goes
// through evaluate_op, the single definition of what an operation means.
#include "region/tape.hpp"

#include <cmath>

#include "base/fail.hpp"

namespace opfuse {

FlatStep flat_step(const Expr& e, const StepNumbers& numbers) {
  FlatStep s;
  s.op = e.op();
  s.dtype = e.op() == ExprOp::extent ? DType::i64 : e.dtype();
  for (const Expr& arg : e.args()) s.args[s.count++] = numbers.at(arg.node());
  switch (e.op()) {
    case ExprOp::read:
    case ExprOp::in_bounds:
    case ExprOp::coord:
    case ExprOp::result:
      s.index = e.index();
      break;
    default:
      break;
  }
  return s;
}

Tape::Tape(const Expr& expr, const SymbolValues& symbols) {
  StepNumbers numbers;
  expr.visit([&](const Expr& e) {
    Step s{flat_step(e, numbers), {}};
    s.constant.dtype = s.dtype;
    if (s.op == ExprOp::extent) s.constant.integer = e.dim().evaluate(symbols);
    if (s.op == ExprOp::constant && is_float(s.dtype)) s.constant.real = e.value();
    if (s.op == ExprOp::constant && !is_float(s.dtype)) s.constant.integer = e.integer_value();
    numbers[e.node()] = static_cast<int>(steps_.size());
    steps_.push_back(std::move(s));
  });
}

namespace {

/// The result when it is one of the common real operations, computed in double.
bool real_operation(ExprOp op, const ScalarValue* a, const ScalarValue* b, double& r) {
  switch (op) {
    case ExprOp::add:
      r = a->real + b->real;
      return true;
    case ExprOp::sub:
      r = a->real - b->real;
      return true;
    case ExprOp::mul:
      r = a->real * b->real;
      return true;
    case ExprOp::div:
      r = a->real / b->real;
      return true;
    case ExprOp::neg:
      r = -a->real;
      return true;
    case ExprOp::exp:
      r = std::exp(a->real);
      return true;
    case ExprOp::erf:
      r = std::erf(a->real);
      return true;
    case ExprOp::tanh:
      r = std::tanh(a->real);
      return true;
    default:
      return false;
  }
}

}  // namespace

void Tape::step(const Step& s, size_t at, TapeLeaves& leaves, TapeSlots& slots, Precision precision) const {
  ScalarValue& out = slots.values[at];
  char& poisoned = slots.poisoned[at];
  poisoned = 0;
  switch (s.op) {
    case ExprOp::constant:
    case ExprOp::extent:
      out = s.constant;
      if (precision == Precision::typed && s.dtype == DType::f32) out.real = static_cast<float>(out.real);
      return;
    case ExprOp::read:
      poisoned = !leaves.load(s.index, out);
      return;
    case ExprOp::in_bounds:
      out = {DType::boolean, 0, leaves.in_bounds(s.index)};
      return;
    case ExprOp::coord:
      out = {DType::i64, 0, leaves.coord(s.index)};
      return;
    case ExprOp::result:
      out = leaves.result(s.index);
      return;
    case ExprOp::select: {
      const int chosen = s.args[slots.values[s.args[0]].as_integer() != 0 ? 1 : 2];
      out = slots.values[chosen];
      poisoned = slots.poisoned[s.args[0]] | slots.poisoned[chosen];
      out.real = out.as_real();
      out.dtype = s.dtype;
      return;
    }
    default:
      break;
  }
  for (int i = 0; i < s.count; ++i) poisoned |= slots.poisoned[s.args[i]];
  if (poisoned) {
    out = {s.dtype, 0, 0};
    return;
  }
  const ScalarValue* a = &slots.values[s.args[0]];
  const ScalarValue* b = s.count > 1 ? &slots.values[s.args[1]] : a;
  const bool real = is_float(s.dtype) && is_float(a->dtype) && is_float(b->dtype);
  const bool plain = precision == Precision::exact || s.dtype == DType::f32 || s.dtype == DType::f64;
  double r = 0;
  if (real && plain && real_operation(s.op, a, b, r)) {
    if (precision == Precision::typed && s.dtype == DType::f32) r = static_cast<float>(r);
    out = {s.dtype, r, 0};
    return;
  }
  slots.args.clear();
  for (int i = 0; i < s.count; ++i) slots.args.push_back(slots.values[s.args[i]]);
  out = evaluate_op(s.op, s.dtype, slots.args, precision);
}

ScalarValue Tape::run(TapeLeaves& leaves, TapeSlots& slots, Precision precision) const {
  if (slots.values.size() < steps_.size()) {
    slots.values.resize(steps_.size());
    slots.poisoned.resize(steps_.size());
  }
  for (size_t i = 0; i < steps_.size(); ++i) step(steps_[i], i, leaves, slots, precision);
  const size_t last = steps_.size() - 1;
  OPFUSE_CHECK(!slots.poisoned[last], "a value depends on an unguarded read outside its tensor");
  return slots.values[last];
}

}  // namespace opfuse
