// One rule for both rewrites that read Linears: what scales or transposes its operand is none.
#include "passes/linear_product.hpp"

#include <fmt/format.h>

#include "match/pattern.hpp"
#include "match/qdq.hpp"
#include "ops/gemm.hpp"

namespace opfuse {

std::variant<LinearProduct, Decline> linear_product(const Node& product, Weights weights) {
  LinearProduct linear{.x = product.input(0), .weight = product.input(1)};
  if (product.is("gemm")) {
    const Gemm::Attrs& a = product.as<Gemm>();
    linear.transposed = a.transB;
    linear.bias = product.input(2);
    if (a.transA || a.alpha != 1 || (linear.bias && a.beta != 1))
      return Decline{"gemm_attributes",
                     fmt::format("{} has alpha {:g}, beta {:g}, transA {}; a Linear has 1, 1, false", describe(product),
                                 a.alpha, a.beta, a.transA),
                     {}};
  }
  const Shape& w = linear.weight->type.shape;
  const bool known =
      weights == Weights::constant ? linear.weight->is_constant() : is_constant_or_dequantized(linear.weight);
  if (!known || !w.ranked || w.rank() != 2 || !w[0].is_constant() || !w[1].is_constant())
    return Decline{"computed_weight",
                   fmt::format("the weight of {} is not a constant matrix", describe(product)),
                   {product.name()}};
  linear.in = w[linear.transposed ? 1 : 0].value();
  linear.out = w[linear.transposed ? 0 : 1].value();
  return linear;
}

const Value* row_bias(const Node& add, const Value* product, int64_t out) {
  if (!add.is("add") || add.output()->type != product->type) return nullptr;
  const Value* bias = add.input(0) == product ? add.input(1) : add.input(0);
  const bool row = bias && bias->is_constant() && bias->constant->elements() == out && bias->constant->rank() > 0 &&
                   bias->constant->sizes().back() == out;
  return row ? bias : nullptr;
}

}  // namespace opfuse
