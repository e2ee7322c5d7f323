// Data that lie in memory as f16 become f32 once per step of a tile, a vector of channels at a time:
//
//   for pixels p of the tile:  widened[p, channels] = f32 of data[p, channels]
//
// Products then read numbers from there as they read f32 data, by broadcasts from memory. Widened where each is spread
// over the lanes, every number would cost a conversion.
#include "cpu/emit/contraction/fetch.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/fence.hpp"
#include "cpu/emit/math/half_float.hpp"

namespace opfuse::cpu {

/// Behind an integer that LLVM cannot know, so that stored vectors are not taken apart in registers.
Value* widened_data(const ContractionPlan& plan) {
  Kernel& k = plan.k;
  const int64_t numbers = plan.schedule.tile_w * plan.schedule.tile_h * plan.schedule.step;
  llvm::AllocaInst* place = k.variable(llvm::ArrayType::get(k.b.getFloatTy(), static_cast<uint64_t>(numbers)));
  place->setAlignment(llvm::Align(static_cast<uint64_t>(k.target.vector_bytes)));
  return k.b.CreateIntToPtr(opaque(k, k.b.CreatePtrToInt(place, k.b.getInt64Ty())), place->getType());
}

/// `data`: where the step starts. Its channels are neighbours (operand_fit.cpp).
void TileProducts::widen_data(const Address& data, int64_t channels, uint64_t pixels) const {
  const DType type = plan_.types().data;
  const PixelSteps steps(plan_, tile_);
  Value* from = k_.element(plan_.data().base, type, k_.add(data.scalar, k_.i64(data.constant)));
  llvm::Type* vector = k_.lanes(k_.memory_type(type), static_cast<int>(channels));
  for (int64_t p = 0; p < tile_.pixels(); ++p) {
    if (!(pixels >> p & 1)) continue;
    Value* at = k_.element(from, type, steps.offset(k_, tile_, p, k_.i64(0)));
    Value* bits = k_.b.CreateAlignedLoad(vector, at, plan_.data_align());
    Value* to = k_.element(plan_.widened, plan_.types().sum, k_.i64(p * plan_.schedule.step));
    k_.b.CreateAlignedStore(widen_half(k_, bits, type), to, plan_.sum_align());
  }
}

}  // namespace opfuse::cpu
