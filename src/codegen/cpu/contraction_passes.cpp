// A block of weights too large for L2 is used in passes over its channels:
//
//   for passes: for items of the block: acc = pass ? scratch : 0;  acc += channels of the pass;  scratch or epilogue
//
// so that the weights of a pass stay in L2 for all its items while those of the next one are fetched.
#include <algorithm>

#include "codegen/cpu/contraction.hpp"

namespace opfuse::cpu {

int64_t ContractionEmitter::passes() const {
  return (channel_depth(s_.stage, view_) + depth_block_ - 1) / depth_block_;
}

/// Where the accumulators of the tile at pixel `q` rest between passes.
Value* ContractionEmitter::resting(Value* q) {
  const bool row_wise = row_axis_ >= 0;
  const int64_t pixels = view_.pixel < 0 ? 1 : axis_extent(s_.stage, view_.pixel).value();
  const int64_t item = (row_wise ? pixels * height_ : width_) * block_;
  k_.scratch_bytes = std::max(k_.scratch_bytes, std::min(chunk_, items().value()) * item * 4);
  Value* offset = k_.mul(item_, k_.i64(item));
  if (row_wise) offset = k_.add(offset, k_.mul(q, k_.i64(height_ * block_)));
  return k_.element(k_.scratch, DType::f32, offset);
}

void ContractionEmitter::start_accumulators(const TileRun& run, Value* rest) {
  auto& b = k_.b;
  llvm::Type* type = acc_[0]->getAllocatedType();
  for (int64_t i = 0; i < run.width * tile_rows_ * vectors_; ++i) {
    Value* start = k_.zero(type);
    if (rest) {
      Value* before = b.CreateAlignedLoad(type, k_.element(rest, DType::f32, k_.i64(i * lanes_)), llvm::Align(4));
      start = b.CreateSelect(b.CreateICmpEQ(pass_, k_.i64(0)), start, before);
    }
    b.CreateStore(start, acc_[static_cast<size_t>(i)]);
  }
}

void ContractionEmitter::rest_accumulators(const TileRun& run, Value* rest) {
  auto& b = k_.b;
  for (int64_t i = 0; i < run.width * tile_rows_ * vectors_; ++i)
    b.CreateAlignedStore(b.CreateLoad(acc_[0]->getAllocatedType(), acc_[static_cast<size_t>(i)]),
                         k_.element(rest, DType::f32, k_.i64(i * lanes_)), llvm::Align(4));
}

/// The weights one block, or one pass, behind those at `w`.
Value* ContractionEmitter::next_weights(const Address& w) {
  const Layout& layout = weights().layout;
  const auto stride = [&](int dim) {
    const auto at = std::find(layout.order.begin(), layout.order.end(), dim) - layout.order.begin();
    return k_.dim(weights().strides[static_cast<size_t>(at)]);
  };
  Value* distance = stride(view_.weights_vec_dim);
  if (depth_block_)
    distance =
        k_.mul(stride(view_.weights_channel_dim), k_.i64(depth_block_ / layout.block_of(view_.weights_channel_dim)));
  return k_.add(k_.add(w.scalar, k_.i64(w.constant)), distance);
}

}  // namespace opfuse::cpu
