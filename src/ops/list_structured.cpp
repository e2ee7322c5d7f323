// Operators with structure: contractions, windows, reductions, movement of elements.
#include <array>

#include "ops/arg_reduce.hpp"
#include "ops/choose.hpp"
#include "ops/compress.hpp"
#include "ops/concat.hpp"
#include "ops/conv.hpp"
#include "ops/conv_transpose.hpp"
#include "ops/cum_sum.hpp"
#include "ops/declare_impl.hpp"
#include "ops/dequantize_words.hpp"
#include "ops/einsum.hpp"
#include "ops/gather.hpp"
#include "ops/gemm.hpp"
#include "ops/global_pool.hpp"
#include "ops/grid_sample.hpp"
#include "ops/lists.hpp"
#include "ops/matmul.hpp"
#include "ops/matmul_integer.hpp"
#include "ops/non_max_suppression.hpp"
#include "ops/non_zero.hpp"
#include "ops/norm.hpp"
#include "ops/one_hot.hpp"
#include "ops/pad.hpp"
#include "ops/pool.hpp"
#include "ops/quantize.hpp"
#include "ops/read_sizes.hpp"
#include "ops/recurrent.hpp"
#include "ops/reduce.hpp"
#include "ops/resize.hpp"
#include "ops/scatter.hpp"
#include "ops/slice.hpp"
#include "ops/softmax.hpp"
#include "ops/space_depth.hpp"
#include "ops/split.hpp"
#include "ops/tile.hpp"
#include "ops/top_k.hpp"
#include "ops/trilu.hpp"
#include "ops/unique.hpp"

namespace opfuse {
namespace {

template <class... Ops>
void add(OpRegistry& registry) {
  (registry.add(declare<Ops>()), ...);
}

/// Operators that no model has: the reader makes them.
template <class... Ops>
void add_internal(OpRegistry& registry) {
  static const std::array<OpInfo, sizeof...(Ops)> infos{declare<Ops>()...};
  for (const OpInfo& info : infos) registry.add_internal(&info);
}

}  // namespace

void register_structured(OpRegistry& registry) {
  add<Conv, ConvTranspose, Gemm, MatMul, MatMulInteger, Einsum>(registry);
  add<BatchNorm, InstanceNorm, GroupNorm, LayerNorm, Lrn>(registry);
  add<MaxPool, AveragePool, LpPool, GlobalAveragePool, GlobalMaxPool, GlobalLpPool>(registry);
  add<ReduceMean, ReduceSum, ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp,
      ReduceSumSquare>(registry);
  add<Softmax, LogSoftmax, Hardmax>(registry);
  add<ArgMax, ArgMin, TopK, CumSum, CumProd>(registry);
  add<Concat, Split, Slice, Pad, Tile, Trilu, DepthToSpace, SpaceToDepth, Resize, GridSample>(registry);
  add<Gather, GatherElements, GatherND, ScatterElements, ScatterND, OneHot, NonZero, NonMaxSuppression>(registry);
  add<Compress, Unique>(registry);
  add_internal<Choose, ReadSizes>(registry);
  add<QuantizeLinear, DequantizeLinear>(registry);
  add<Rnn, Gru, Lstm>(registry);
}

/// Declared here, as those of the registry are: alone in a file GCC 12 takes its attributes for uninitialised.
const OpInfo* dequantize_words_op() {
  static const OpInfo info = declare<DequantizeWords>();
  return &info;
}

}  // namespace opfuse
