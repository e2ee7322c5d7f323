// Elementwise operators: each states its law once, in a header of its own.
#include "ops/abs.hpp"
#include "ops/acos.hpp"
#include "ops/acosh.hpp"
#include "ops/add.hpp"
#include "ops/and.hpp"
#include "ops/asin.hpp"
#include "ops/asinh.hpp"
#include "ops/atan.hpp"
#include "ops/atanh.hpp"
#include "ops/bit_cast.hpp"
#include "ops/bit_shift.hpp"
#include "ops/bitwise_and.hpp"
#include "ops/bitwise_not.hpp"
#include "ops/bitwise_or.hpp"
#include "ops/bitwise_xor.hpp"
#include "ops/cast.hpp"
#include "ops/cast_like.hpp"
#include "ops/ceil.hpp"
#include "ops/celu.hpp"
#include "ops/clip.hpp"
#include "ops/cos.hpp"
#include "ops/cosh.hpp"
#include "ops/declare_impl.hpp"
#include "ops/div.hpp"
#include "ops/dropout.hpp"
#include "ops/elu.hpp"
#include "ops/equal.hpp"
#include "ops/erf.hpp"
#include "ops/exp.hpp"
#include "ops/floor.hpp"
#include "ops/gelu.hpp"
#include "ops/greater.hpp"
#include "ops/greater_or_equal.hpp"
#include "ops/hard_sigmoid.hpp"
#include "ops/hard_swish.hpp"
#include "ops/identity.hpp"
#include "ops/is_inf.hpp"
#include "ops/is_nan.hpp"
#include "ops/leaky_relu.hpp"
#include "ops/less.hpp"
#include "ops/less_or_equal.hpp"
#include "ops/lists.hpp"
#include "ops/log.hpp"
#include "ops/max.hpp"
#include "ops/mean.hpp"
#include "ops/min.hpp"
#include "ops/mish.hpp"
#include "ops/mod.hpp"
#include "ops/mul.hpp"
#include "ops/neg.hpp"
#include "ops/not.hpp"
#include "ops/or.hpp"
#include "ops/pow.hpp"
#include "ops/prelu.hpp"
#include "ops/reciprocal.hpp"
#include "ops/relu.hpp"
#include "ops/round.hpp"
#include "ops/selu.hpp"
#include "ops/shrink.hpp"
#include "ops/sigmoid.hpp"
#include "ops/sign.hpp"
#include "ops/silu.hpp"
#include "ops/sin.hpp"
#include "ops/sinh.hpp"
#include "ops/softplus.hpp"
#include "ops/softsign.hpp"
#include "ops/sqrt.hpp"
#include "ops/sub.hpp"
#include "ops/sum.hpp"
#include "ops/tan.hpp"
#include "ops/tanh.hpp"
#include "ops/thresholded_relu.hpp"
#include "ops/where.hpp"
#include "ops/xor.hpp"

namespace opfuse {
namespace {

template <class... Ops>
void add_all(OpRegistry& registry) {
  (registry.add(declare<Ops>()), ...);
}

}  // namespace

void register_elementwise(OpRegistry& registry) {
  // activations
  add_all<Relu, Clip, LeakyRelu, PRelu, Elu, Selu, Celu, ThresholdedRelu, Gelu, Silu, HardSwish, HardSigmoid, Mish,
          Sigmoid, Tanh, Softplus, Softsign, Shrink>(registry);
  // functions of one operand
  add_all<Erf, Exp, Log, Sqrt, Abs, Neg, Sign, Floor, Ceil, Round, Reciprocal, Sin, Cos, Tan, Asin, Acos, Atan, Sinh,
          Cosh, Asinh, Acosh, Atanh>(registry);
  // arithmetic
  add_all<Add, Sub, Mul, Div, Pow, Mod, Min, Max, Sum, Mean>(registry);
  // comparison, logic, bits
  add_all<Equal, Less, LessOrEqual, Greater, GreaterOrEqual, And, Or, Xor, Not, BitwiseAnd, BitwiseOr, BitwiseXor,
          BitwiseNot, BitShift>(registry);
  // choice and conversion
  add_all<Where, Cast, BitCast, CastLike, IsNan, IsInf, Identity, Dropout>(registry);
}

}  // namespace opfuse
