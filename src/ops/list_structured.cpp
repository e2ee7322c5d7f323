// Operators with structure: contractions, windows, reductions, movement of elements.
#include "ops/concat.hpp"
#include "ops/conv.hpp"
#include "ops/declare_impl.hpp"
#include "ops/gemm.hpp"
#include "ops/global_pool.hpp"
#include "ops/lists.hpp"
#include "ops/matmul.hpp"
#include "ops/norm.hpp"
#include "ops/pool.hpp"
#include "ops/reduce.hpp"
#include "ops/softmax.hpp"

namespace opfuse {
namespace {

template <class... Ops>
void add(OpRegistry& registry) {
  (registry.add(declare<Ops>()), ...);
}

}  // namespace

void register_structured(OpRegistry& registry) {
  add<Conv, Gemm, MatMul>(registry);
  add<BatchNorm, InstanceNorm, GroupNorm, LayerNorm, Lrn>(registry);
  add<MaxPool, AveragePool, LpPool, GlobalAveragePool, GlobalMaxPool, GlobalLpPool>(registry);
  add<ReduceMean, ReduceSum, ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp,
      ReduceSumSquare>(registry);
  add<Softmax, LogSoftmax, Hardmax>(registry);
  add<Concat>(registry);
}

}  // namespace opfuse
