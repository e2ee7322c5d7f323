// Weights that do not stay in L2 beside the data are used in passes over their channels:
//
//   for passes: for blocks: for items:  acc = pass ? scratch : 0;  acc += channels of the pass;  scratch or epilogue
//
// so that the data of a pass stay in L2 for all blocks while the next weights are fetched, and those come from beyond
// L2 once.
#include <algorithm>

#include "base/integers.hpp"
#include "cpu/emit/contraction/contraction.hpp"

namespace opfuse::cpu {

int64_t ContractionEmitter::passes() const { return ceil_of(channel_depth(s_.stage, view_), depth_block_); }

/// Where the accumulators of block `ob` and the tile at pixel `q` rest between passes.
Value* ContractionEmitter::resting(Value* ob, Value* q) {
  const bool row_wise = row_axis_ >= 0;
  const int64_t pixels = view_.pixel < 0 ? 1 : axis_extent(s_.stage, view_.pixel).value();
  const int64_t item = (row_wise ? pixels * height_ : width_) * block_ * sums_;
  const int64_t items = std::min(chunk_, items_per_part());
  k_.scratch_bytes = std::max(k_.scratch_bytes, blocks_per_part() * items * item * types().sum_bytes());
  Value* at = k_.add(k_.mul(k_.sub(ob, first_block_), k_.i64(items)), item_);
  Value* offset = k_.mul(at, k_.i64(item));
  if (row_wise) offset = k_.add(offset, k_.mul(q, k_.i64(height_ * block_ * sums_)));
  return k_.element(k_.scratch, types().sum, offset);
}

void ContractionEmitter::start_accumulators(const TileRun& run, Value* rest) {
  auto& b = k_.b;
  llvm::Type* type = acc_[0]->getAllocatedType();
  for (int64_t i = 0; i < run.width * tile_rows_ * vectors_of_weights(); ++i) {
    Value* start = k_.zero(type);
    if (rest && !unused(i)) {
      Value* before = b.CreateAlignedLoad(type, k_.element(rest, types().sum, k_.i64(i * lanes_)), sum_align());
      start = b.CreateSelect(b.CreateICmpEQ(pass_, k_.i64(0)), start, before);
    }
    b.CreateStore(start, acc_[static_cast<size_t>(i)]);
  }
}

void ContractionEmitter::rest_accumulators(const TileRun& run, Value* rest) {
  auto& b = k_.b;
  for (int64_t i = 0; i < run.width * tile_rows_ * vectors_of_weights(); ++i)
    if (!unused(i))
      b.CreateAlignedStore(b.CreateLoad(acc_[0]->getAllocatedType(), acc_[static_cast<size_t>(i)]),
                           k_.element(rest, types().sum, k_.i64(i * lanes_)), sum_align());
}

/// The weights behind those at `w`: the next block's of this pass, or the first block's of the next. Behind the last
/// pass over the last block lies the next part's.
Value* ContractionEmitter::next_weights(const Address& w, Value* ob) {
  const Layout& layout = weights().layout;
  const auto stride = [&](int dim) {
    const auto at = std::find(layout.order.begin(), layout.order.end(), dim) - layout.order.begin();
    return k_.dim(weights().strides[static_cast<size_t>(at)]);
  };
  Value* block = stride(view_.weights_vec_dim);
  Value* distance = block;
  if (depth_block_) {
    Value* pass =
        k_.mul(stride(view_.weights_channel_dim), k_.i64(depth_block_ / layout.block_of(view_.weights_channel_dim)));
    Value* to_next_pass = k_.sub(pass, k_.mul(block, k_.sub(last_block_, first_block_)));
    Value* to_next_part = k_.sub(block, k_.mul(pass, k_.i64(passes() - 1)));
    Value* last_pass = k_.b.CreateICmpEQ(pass_, k_.i64(passes() - 1));
    distance = k_.b.CreateSelect(k_.b.CreateICmpSLT(ob, last_block_), block,
                                 k_.b.CreateSelect(last_pass, to_next_part, to_next_pass));
  }
  return k_.add(k_.add(w.scalar, k_.i64(w.constant)), distance);
}

}  // namespace opfuse::cpu
