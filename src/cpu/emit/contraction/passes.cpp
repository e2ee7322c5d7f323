// Weights that do not stay in L2 beside the data are used in passes over their channels:
//
//   for passes: for blocks: for items:  acc = pass ? scratch : 0;  acc += channels of the pass;  scratch or epilogue
//
// so that the data of a pass stay in L2 for all blocks while the next weights are fetched, and those come from beyond
// L2 once.

#include <algorithm>

#include "cpu/emit/contraction/epilogue.hpp"
#include "cpu/emit/contraction/fetch.hpp"
#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/contraction/walk.hpp"

namespace opfuse::cpu {
namespace {

/// Where the tile's sums rest; `pixel`: its first.
Value* resting_place(const ContractionPlan& plan, const Tile& tile, Value* pixel) {
  Kernel& k = plan.k;
  const ContractionView& view = plan.view;
  const bool row_wise = plan.row_axis >= 0;
  const int64_t height = plan.schedule.tile_h, width = plan.schedule.tile_w;
  const int64_t pixels = view.pixel < 0 ? 1 : axis_extent(plan.s.stage, view.pixel).value();
  const int64_t item = (row_wise ? pixels * height : width) * plan.block * plan.sums;
  const int64_t items = std::min(int64_t{plan.schedule.chunk}, plan.items_per_part());
  k.scratch_bytes = std::max(k.scratch_bytes, plan.blocks_per_part() * items * item * plan.types().sum_bytes());
  Value* at = k.add(k.mul(k.sub(tile.block, tile.first_block), k.i64(items)), tile.item);
  Value* offset = k.mul(at, k.i64(item));
  if (row_wise) offset = k.add(offset, k.mul(pixel, k.i64(height * plan.block * plan.sums)));
  return k.element(k.scratch, plan.types().sum, offset);
}

Value* at_rest(const ContractionPlan& plan, Value* place, int64_t accumulator) {
  return plan.k.element(place, plan.types().sum, plan.k.i64(accumulator * plan.lanes));
}

void resume_sums(const ContractionPlan& plan, const Tile& tile, const Env& env, Value* place) {
  auto& b = plan.k.b;
  llvm::Type* type = plan.product.sums;
  start_sums(plan, tile, env);
  for (int64_t i = 0; i < tile.accumulators(); ++i) {
    Value* start = plan.k.zero(type);
    if (!tile.form.unused(i)) {
      start = b.CreateLoad(type, plan.places[static_cast<size_t>(i)]);
      Value* before = b.CreateAlignedLoad(type, at_rest(plan, place, i), plan.sum_align());
      start = b.CreateSelect(b.CreateICmpEQ(tile.pass, plan.k.i64(0)), start, before);
    }
    b.CreateStore(start, plan.places[static_cast<size_t>(i)]);
  }
}

void rest_sums(const ContractionPlan& plan, const Tile& tile, Value* place) {
  auto& b = plan.k.b;
  for (int64_t i = 0; i < tile.accumulators(); ++i) {
    if (tile.form.unused(i)) continue;
    Value* sum = b.CreateLoad(plan.product.sums, plan.places[static_cast<size_t>(i)]);
    b.CreateAlignedStore(sum, at_rest(plan, place, i), plan.sum_align());
  }
}

/// Goes on from the sums that rest, and leaves them there or computes the outputs.
void emit_tile(const ContractionPlan& plan, const Tile& tile, const Env& env) {
  Kernel& k = plan.k;
  Value* pixel = plan.view.pixel < 0 ? k.i64(0) : env.axes[static_cast<size_t>(plan.view.pixel)].base;
  Value* place = resting_place(plan, tile, pixel);
  if (plan.schedule.fetch_outputs) fetch_epilogue(plan, tile, env);
  resume_sums(plan, tile, env, place);
  TileProducts(plan, tile).add_inside(env);
  k.branch(
      k.b.CreateICmpEQ(tile.pass, k.i64(plan.passes() - 1)), [&] { emit_epilogue(plan, tile, env); },
      [&] { rest_sums(plan, tile, place); });
}

}  // namespace

void emit_in_passes(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items) {
  walk_tiles(plan, env, blocks, items, [&](const Tile& tile, const Env& at) { emit_tile(plan, tile, at); });
}

Value* next_weights(const ContractionPlan& plan, const Tile& tile, const Address& weights) {
  Kernel& k = plan.k;
  const Layout& layout = plan.weights.layout;
  const int64_t pass_channels = plan.schedule.k_block;
  const auto stride = [&](int dim) {
    const auto at = std::find(layout.order.begin(), layout.order.end(), dim) - layout.order.begin();
    return k.dim(plan.weights.strides[static_cast<size_t>(at)]);
  };
  Value* block = stride(plan.view.weights_vec_dim);
  Value* distance = block;
  if (pass_channels) {
    const int channel = plan.view.weights_channel_dim;
    Value* pass = k.mul(stride(channel), k.i64(pass_channels / layout.block_of(channel)));
    Value* to_next_pass = k.sub(pass, k.mul(block, k.sub(tile.last_block, tile.first_block)));
    Value* to_next_part = k.sub(block, k.mul(pass, k.i64(plan.passes() - 1)));
    Value* last_pass = k.b.CreateICmpEQ(tile.pass, k.i64(plan.passes() - 1));
    distance = k.b.CreateSelect(k.b.CreateICmpSLT(tile.block, tile.last_block), block,
                                k.b.CreateSelect(last_pass, to_next_part, to_next_pass));
  }
  return k.add(k.add(weights.scalar, k.i64(weights.constant)), distance);
}

}  // namespace opfuse::cpu
