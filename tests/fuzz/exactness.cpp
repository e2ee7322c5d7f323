// Multiples of 2^-grid below 2^q need grid + q bits. A node on the magnitudes of its operands bounds every partial sum;
// with 1 for what is smaller, every partial product: 2^130 * 0 is NaN or 0, as the order has it.
#include "fuzz/exactness.hpp"

#include <algorithm>
#include <cmath>

#include "interp/interpreter.hpp"

namespace opfuse::fuzz {

int bits_needed(const Tensor& data) {
  constexpr int kFinest = 20, kNone = 99;
  double high = 0;
  int grid = 0;
  for (int64_t i = 0; i < data.elements(); ++i) {
    const double x = std::abs(data.real(i));
    high = std::max(high, x);
    while (grid <= kFinest && std::ldexp(x, grid) != std::floor(std::ldexp(x, grid))) ++grid;
  }
  return grid > kFinest || !std::isfinite(high) ? kNone : grid + (high > 1 ? std::ilogb(high) + 1 : 0);
}

int exact_bits(DType dtype) { return dtype == DType::f16 ? 9 : dtype == DType::bf16 ? 6 : 20; }

bool sums_stay_exact(const Node& node, const std::vector<const Tensor*>& operands, const SymbolValues& symbols) {
  if (node.op->kind == OpKind::elementwise || node.op->kind == OpKind::injective) return true;
  const double least = node.is("reduce_prod") ? 1 : 0;
  std::vector<Tensor> magnitudes;
  for (const Tensor* operand : operands) {
    magnitudes.push_back(operand ? operand->clone() : Tensor());
    if (!operand || !is_float(operand->dtype())) continue;
    for (int64_t i = 0; i < operand->elements(); ++i)
      magnitudes.back().set_real(i, std::max(std::abs(operand->real(i)), least));
  }
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < operands.size(); ++i) pointers.push_back(operands[i] ? &magnitudes[i] : nullptr);
  for (const Tensor& bound : interpret_node(node, pointers, {.symbols = symbols, .keep_exact = true}))
    if (is_float(bound.dtype()) && bits_needed(bound) > exact_bits(node.output()->type.dtype)) return false;
  return true;
}

}  // namespace opfuse::fuzz
