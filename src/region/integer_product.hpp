// Products of quantised operands as sums of their codes: a contraction of what DequantizeLinear makes of u8 or i8 codes
// and of constant codes, which are i8 once their zero points are subtracted, is an exact sum in i32,
//
//   real = f32(sum x w + shift) * f32(s_x s_w)        shift = bias - z_x sum w
//
// where padding has the code z_x. Instructions multiply u8 by i8: 128 is added to i8 codes and to their z_x.
// docs/accuracy.md, "Requantised", is the definition of what follows behind it.
#pragma once

#include <optional>
#include <vector>

#include "region/lowering.hpp"

namespace opfuse {

struct IntegerProduct {
  const Value* data = nullptr;     ///< u8 or i8 codes
  const Value* weights = nullptr;  ///< constant codes
  Tensor codes;                    ///< the weights as i8 without zero points
  bool plain = true;               ///< the weights are these codes
  int64_t zero = 0;                ///< of the data
  int64_t offset = 0;              ///< added to the codes and to their zero point
  std::vector<double> scales;      ///< s_x s_w by output channel
  const Tensor* bias = nullptr;    ///< i32 codes of the scale s_x s_w
  std::vector<double> real_bias;   ///< any other constant bias; empty: none
  int64_t axis = 0;                ///< of the weights: the output channels
};

/// Nothing where the node is a product of other things. Declines a product of codes that has no such sum, by name.
/// `axis`: of the weights, the output channels; `offsets`: i8 codes are made unsigned.
std::optional<IntegerProduct> integer_product(const Lowering& lowering, const Node& node, int64_t axis, bool offsets);

/// A weight at `map`, as an i8 code.
Expr weight_at(Lowering& lowering, const IntegerProduct& product, const IndexMap& map);
/// The codes `x`, or `padding` of them, as factors in i32.
Expr widened(const IntegerProduct& product, const Expr& x);
Expr padding_of(const IntegerProduct& product);

/// The product as a real number; `sum`: of x w; `channels`: coordinate of the output channel.
Expr real_of(Lowering& lowering, const IntegerProduct& product, const Expr& sum, const IndexMap& channels);

/// x * multiplier[c] + shift[c]: a constant factor of x becomes part of the multiplier, in double, rounded once.
Expr affine_of(Lowering& lowering, const Expr& x, const std::vector<double>& multipliers,
               const std::vector<double>& shifts, const IndexMap& channels);

/// The constant that a value is, or that DequantizeLinear makes of constants inside the group; none: neither.
std::optional<Tensor> dequantised_constant(const Lowering& lowering, const Value* value);

/// The zero point of all codes, 0 where none is given; nothing: it is not constant, or channels have their own.
std::optional<int64_t> zero_point_of_all(const Lowering& lowering, const Value* zero_points);

/// The scales of quantised numbers: one for all, or one by channel.
struct Steps {
  std::vector<double> values;
  IndexMap channels;  ///< where there are several: coordinate of the channel

  bool single() const { return values.size() == 1; }
};

/// Steps as a factor.
Expr factor_of(Lowering& lowering, const Steps& steps);

/// x / steps for steps of the graph: constant factors of x are divided instead, in double, and rounded once.
Expr divided(Lowering& lowering, const Expr& x, const Steps& steps);

}  // namespace opfuse
