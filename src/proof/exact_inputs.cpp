// A product of two drawn numbers is an integer of at most 64, so 2^18 of them stay below 2^24: every partial sum is a
// number of f32, and kernels must have the bits of the exact result whatever their order.
#include "proof/exact_inputs.hpp"

#include <fmt/core.h>

#include <cmath>

#include "interp/random_inputs.hpp"

namespace opfuse {
namespace {

constexpr double kLargeNumber = 0x1p20;

bool wants_positive(ExprOp op) {
  return op == ExprOp::sqrt || op == ExprOp::rsqrt || op == ExprOp::log || op == ExprOp::pow ||
         op == ExprOp::reciprocal || op == ExprOp::div || op == ExprOp::mod || op == ExprOp::fmod;
}

/// Parameters read in the divisor or argument `e`.
void mark(const Stage& stage, const Expr& e, std::vector<bool>& positive) {
  e.visit([&](const Expr& x) {
    if (x.op() != ExprOp::read) return;
    const Read& read = stage.reads[static_cast<size_t>(x.index())];
    if (read.stage < 0) positive[static_cast<size_t>(read.index)] = true;
  });
}

double power_of_two(double v) {
  if (v == 0) return 0;
  return std::copysign(std::exp2(std::round(std::log2(std::fabs(v)))), v);
}

}  // namespace

ExactInputs::ExactInputs(const Region& region, uint64_t seed)
    : positive_(region.params.size(), false), factor_(region.params.size(), 1), seed_(seed) {
  for (const Stage& stage : region.stages) {
    const auto look = [&](const Expr& e) {
      if (wants_positive(e.op())) mark(stage, e.args().back(), positive_);
      if (e.op() == ExprOp::pow) mark(stage, e.args().front(), positive_);
    };
    for (const Reduction& r : stage.reductions) r.value.visit(look);
    for (const StageOutput& o : stage.outputs) o.value.visit(look);
  }
}

Tensor ExactInputs::draw(size_t param, const Tensor& real) const {
  if (!is_float(real.dtype())) return real;
  Random random(seed_, fmt::format("operand {}", param));
  const int64_t factor = factor_[param];
  const bool half = byte_size(real.dtype()) == 2;
  Tensor drawn(real.dtype(), real.sizes());
  for (int64_t i = 0, n = drawn.elements(); i < n; ++i) {
    const double was = real.real(i);
    double v = was;
    if (std::fabs(was) <= kLargeNumber && n == 1)
      v = positive_[param] ? power_of_two(was > 0 ? was : 1) : power_of_two(was);
    else if (std::fabs(was) <= kLargeNumber && positive_[param])
      v = random.between(0, 1) ? 4 : 1;
    else if (std::fabs(was) <= kLargeNumber)
      v = static_cast<double>(random.between(1, half || factor > 1 ? 2 : 8) * factor * (random.between(0, 1) ? 1 : -1));
    drawn.set_real(i, v);
  }
  return drawn;
}

}  // namespace opfuse
