// Each distinct node of the expression once, operands first; 64 lanes per step, so that what a step costs beyond its
// arithmetic is shared. Activations that generators have whole forms for (sigmoid, tables) get the ULPs of those.
#include "proof/lane_tape.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/activation_form.hpp"
#include "tensor/number.hpp"

namespace opfuse {
namespace {

constexpr double kLogisticUlps = 3;
constexpr double kTableUlps = 3.1;
constexpr double kRoundedUlps = 5;  ///< its argument and its result are scaled

/// f32(sum x w + shift): the graph has sum x w s_x s_w + bias f32(s_x s_w), whose scales differ by half an ULP, so the
/// factor behind the cast is off by that of each addend, however much they cancel (region/integer_product.hpp). And of
/// the bias: shift = bias - z_x sum w may be a small rest of it.
bool sums_codes(const Expr& e) {
  if (e.op() != ExprOp::cast || !is_float(e.dtype()) || e.args()[0].op() != ExprOp::add) return false;
  const std::vector<Expr>& addends = e.args()[0].args();
  return std::any_of(addends.begin(), addends.end(),
                     [](const Expr& a) { return a.op() == ExprOp::read && a.dtype() == DType::i32; });
}

double table_ulps(TabledActivation activation) {
  return activation == TabledActivation::gelu_rounded ? kRoundedUlps : kTableUlps;
}
double table_floor(TabledActivation activation) { return activation == TabledActivation::silu ? 4e-7 : 3e-7; }

}  // namespace

LaneTape::LaneTape(const Expr& expr, const SymbolValues& symbols, const ErrorModel& model) {
  StepNumbers numbers;
  expr.visit([&](const Expr& e) {
    Step s{flat_step(e, numbers), {}, {}, {}, {}};
    if (s.op == ExprOp::extent) s.integer = e.dim().evaluate(symbols);
    if (s.op == ExprOp::constant) set_constant(s, e, model);
    const bool divides = s.op == ExprOp::div || s.op == ExprOp::reciprocal;
    if (divides && exponent_of_logistic(e.args().back())) s.note.ulps = kLogisticUlps;
    if (model.tables && is_float(s.dtype))
      if (const auto form = activation_form(e)) {
        const auto at = numbers.find(form->x.node());
        s.note = {table_ulps(form->activation), table_floor(form->activation), at == numbers.end() ? -1 : at->second};
      }
    s.sums_codes = model.folded && sums_codes(e);
    s.bias_code = model.bias_code;
    s.note.typed = model.typed;
    numbers[e.node()] = static_cast<int>(steps_.size());
    steps_.push_back(s);
  });
}

void LaneTape::set_constant(Step& s, const Expr& e, const ErrorModel& model) {
  if (!is_float(s.dtype)) {
    s.integer = e.integer_value();
    return;
  }
  s.real = model.folded ? e.value() : round_to(computed_in(s.dtype), e.value());
  if (std::isfinite(s.real)) s.error = std::fabs(s.real - round_to(s.dtype, s.real));
}

void LaneTape::constant(const Step& s, int count, Lanes& out) const {
  out.reset(s.dtype);
  for (int i = 0; i < count; ++i) {
    out.value[static_cast<size_t>(i)] = s.real;
    out.integer[static_cast<size_t>(i)] = s.integer;
    if (s.error != 0) out.set_error(i, Reach::both(s.error), false);
  }
}

void LaneTape::add_scales(const Step& cast, const std::vector<Lanes>& slots, int count, Lanes& out) const {
  const Step& sum = steps_[static_cast<size_t>(cast.args[0])];
  for (int i = 0; i < count; ++i) {
    double addends = cast.bias_code;
    for (int k = 0; k < sum.count; ++k) addends += std::fabs(slots[static_cast<size_t>(sum.args[k])].real(i));
    if (addends > 0) out.set_error(i, out.error_of(i) + Reach::both(unit_of(out.dtype) * addends), out.tie_of(i));
  }
}

const Lanes& LaneTape::run(LaneLeaves& leaves, int count, std::vector<Lanes>& slots) const {
  if (slots.size() < steps_.size()) slots.resize(steps_.size());
  for (size_t at = 0; at < steps_.size(); ++at) {
    const Step& s = steps_[at];
    Lanes& out = slots[at];
    switch (s.op) {
      case ExprOp::constant:
      case ExprOp::extent:
        constant(s, count, out);
        break;
      case ExprOp::read:
        leaves.load(s.index, out);
        break;
      case ExprOp::in_bounds:
        leaves.in_bounds(s.index, out);
        break;
      case ExprOp::coord:
        leaves.coord(s.index, out);
        break;
      case ExprOp::result:
        leaves.result(s.index, out);
        break;
      default: {
        const Lanes* args[3];
        for (int i = 0; i < s.count; ++i) args[i] = &slots[static_cast<size_t>(s.args[i])];
        const Lanes* argument = s.note.argument >= 0 ? &slots[static_cast<size_t>(s.note.argument)] : nullptr;
        apply_with_error(s.op, s.dtype, {args, static_cast<size_t>(s.count)}, s.note, argument, count, out);
        if (s.sums_codes) add_scales(s, slots, count, out);
        if (out.swallows) leaves.swallowed();
      }
    }
  }
  return slots[steps_.size() - 1];
}

}  // namespace opfuse
