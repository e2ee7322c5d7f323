// Without byte products a vector of weights takes three operations to become two of i16, as many as the products of a
// pixel and a half. A part does that once for each of its blocks:
//
//   codes [lane][4 channels]    ->    i16 of channels 0 and 2 [lane][2] | of channels 1 and 3 [lane][2]
#include "cpu/emit/contraction/widen_weights.hpp"

#include <algorithm>

#include "base/fail.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kVectorsAtOnce = 2;

/// Position of the blocks of output channels among the strides.
size_t block_stride(const ContractionPlan& plan, const Operand& weights) {
  const auto& order = weights.layout.order;
  return static_cast<size_t>(std::find(order.begin(), order.end(), plan.view.weights_vec_dim) - order.begin());
}

}  // namespace

Operand widened_weights(const ContractionPlan& plan) {
  Operand weights = plan.s.reads[static_cast<size_t>(plan.view.weights)];
  weights.base = plan.k.scratch;
  weights.strides[block_stride(plan, weights)] = Dim(0);
  return weights;
}

void widen_block(const ContractionPlan& plan, Value* block) {
  Kernel& k = plan.k;
  auto& b = k.b;
  const Operand& from = plan.s.reads[static_cast<size_t>(plan.view.weights)];
  const int64_t codes = from.strides[block_stride(plan, from)].value(), bytes = k.target.vector_bytes;
  OPFUSE_CHECK(codes % bytes == 0, "a block of {} codes is not whole vectors", codes);
  k.scratch_bytes = std::max(k.scratch_bytes, 2 * codes);
  Value* start = k.element(from.base, DType::i8, k.mul(block, k.i64(codes)));
  llvm::Type* words = k.lanes(b.getInt16Ty(), static_cast<int>(bytes / 2));
  const auto widen = [&](Value* first) {
    Value* pairs = b.CreateAlignedLoad(words, k.element(start, DType::i8, first), plan.weight_align());
    const auto store = [&](Value* wide, int64_t half) {
      Value* to = k.element(k.scratch, DType::i16, k.add(first, k.i64(half * bytes / 2)));
      b.CreateAlignedStore(wide, to, plan.sum_align());
    };
    store(b.CreateAShr(b.CreateShl(pairs, 8), 8), 0);
    store(b.CreateAShr(pairs, 8), 1);
  };
  const int64_t whole = codes / (kVectorsAtOnce * bytes) * kVectorsAtOnce * bytes;
  k.loop(k.i64(0), k.i64(whole), kVectorsAtOnce * bytes, [&](Value* first) {
    for (int64_t i = 0; i < kVectorsAtOnce; ++i) widen(k.add(first, k.i64(i * bytes)));
  });
  for (int64_t first = whole; first < codes; first += bytes) widen(k.i64(first));
}

Factor widened_factor(const ContractionPlan& plan, Value* at) {
  Kernel& k = plan.k;
  const int64_t numbers = 2 * plan.lanes;
  llvm::Type* words = k.lanes(k.b.getInt16Ty(), static_cast<int>(numbers));
  Factor factor;
  for (const int64_t first : {int64_t{0}, numbers})
    factor.push_back(k.b.CreateAlignedLoad(words, k.element(at, DType::i16, k.i64(first)), plan.sum_align()));
  return factor;
}

}  // namespace opfuse::cpu
