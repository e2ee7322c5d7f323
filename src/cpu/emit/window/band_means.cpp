#include "cpu/emit/window/band_means.hpp"

#include <algorithm>

namespace opfuse::cpu {

StageEmitter::Locals not_stored(const std::optional<MeanView>& view) {
  if (!view) return {};
  return {{{view->map, view->kept}, Operand{}}};
}

BandMeans::BandMeans(Kernel& k, const std::optional<MeanView>& view, int64_t vectors)
    : k_(k), view_(view), vectors_(vectors), lanes_(lanes_of(k.target)) {
  if (!view) return;
  sums_ = k.element(k.scratch, DType::f32, k.i64(k.scratch_bytes / 4));
  k.scratch_bytes += vectors * lanes_ * 4;
}

void BandMeans::clear() {
  if (!view_) return;
  Value* zero = k_.zero(k_.lanes(k_.b.getFloatTy(), static_cast<int>(lanes_)));
  for (int64_t v = 0; v < vectors_; ++v)
    k_.b.CreateAlignedStore(zero, k_.element(sums_, DType::f32, k_.i64(v * lanes_)), llvm::Align(4));
}

void BandMeans::attach(WindowEmitter& window, Value* first) const {
  if (view_) window.sum_into(sums_, first, view_->stored);
}

void BandMeans::store(const WindowEmitter& window, const Env& env, Value* first, Value* end, Value* row) {
  if (!view_) return;
  StageEmitter means(k_, view_->bands, not_stored(view_));
  Env start = means.fresh_env(1);
  start.axes[0] = env.axes[0];
  start.axes[2] = {k_.div(row, k_.i64(view_->rows)), false, 1};
  int64_t block = 1;
  for (const Block& b : means.outputs[0].layout.blocks) block = std::max(block, b.factor);
  window.each_vector(start, first, end, [&](Env at, Value* vector) {
    at.block = block;
    Value* place = k_.element(sums_, DType::f32, k_.mul(k_.sub(vector, first), k_.i64(lanes_)));
    llvm::Type* type = k_.lanes(k_.b.getFloatTy(), at.width);
    means.store_outputs(at, {k_.b.CreateAlignedLoad(type, place, llvm::Align(4))});
  });
}

}  // namespace opfuse::cpu
