// The product of a Linear as rewrites read it.
#pragma once

#include <cstdint>
#include <variant>

#include "base/decline.hpp"
#include "ir/graph.hpp"

namespace opfuse {

/// y = x w [+ b] with a constant matrix w.
struct LinearProduct {
  Value *x = nullptr, *weight = nullptr;
  Value* bias = nullptr;    ///< of a Gemm
  bool transposed = false;  ///< weight is [out, in]
  int64_t in = 0, out = 0;
};

/// Weights of quantised models are constants behind DequantizeLinear.
enum class Weights { constant, constant_or_dequantized };

/// What a Gemm or MatMul computes. Declined: "gemm_attributes" when it scales or transposes x, "computed_weight" when
/// its second operand is not such a matrix.
std::variant<LinearProduct, Decline> linear_product(const Node& product, Weights weights = Weights::constant);

/// The constant of `out` elements that `add` adds to each row of `product`; null when it does something else.
const Value* row_bias(const Node& add, const Value* product, int64_t out);

}  // namespace opfuse
