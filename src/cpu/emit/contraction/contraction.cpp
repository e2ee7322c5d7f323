// Direct convolution and GEMM: a register tile of pixels x vectors of output channels.
//
//   for batch, channel blocks, rows, tiles:         parts cut batch, channel blocks and rows; walk.cpp
//     acc = 0                                       pixels * vectors registers
//     for channel steps: for taps:                  taps outside the data are clipped or left out; taps.cpp
//       for channels of the step:                   unrolled; step.cpp
//         w[v] = weights vectors; for each pixel: acc[p][v] += broadcast(data[p]) * w[v]           product.cpp
//     epilogue in registers, one store per vector   epilogue.cpp
//
// Several sums of the same data (a gated MLP) have accumulators of their own; the epilogue combines them. What a
// schedule may add is a policy in a file of its own: pack, passes, half, overlap, matrix, fetch, grouped. None of them
// changes the plan; what they know of a tile is the tile (tile.hpp).
//
// Weights lie [O/block][taps and channel steps][lanes][block], so a block of them is one stream.
#include "cpu/emit/contraction/contraction.hpp"

#include "base/fail.hpp"
#include "cpu/emit/contraction/epilogue.hpp"
#include "cpu/emit/contraction/fetch.hpp"
#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/contraction/walk.hpp"
#include "cpu/emit/emitters.hpp"

namespace opfuse::cpu {
namespace {

void emit_tiles(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items) {
  for (const TileKind& kind : kTileKinds)
    if (kind.asked(plan.schedule)) return kind.emit(plan, env, blocks, items);
}

}  // namespace

void clear_sums(const ContractionPlan& plan, const Tile& tile) {
  for (int64_t i = 0; i < tile.accumulators(); ++i)
    plan.k.b.CreateStore(plan.k.zero(plan.product.sums), plan.places[static_cast<size_t>(i)]);
}

void emit_plain(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items) {
  walk_tiles(plan, env, blocks, items, [&](const Tile& tile, const Env& at) {
    if (plan.schedule.fetch_outputs) fetch_epilogue(plan, tile, at);
    clear_sums(plan, tile);
    TileProducts(plan, tile).add_inside(at);
    emit_epilogue(plan, tile, at);
  });
}

void ContractionEmitter::emit(const Env& env, PartRange blocks, PartRange items) const {
  if (!plan_.schedule.pack) return emit_tiles(plan_, env, blocks, items);
  Kernel& k = plan_.k;
  k.loop(blocks.begin, blocks.end, 1, [&](Value* block) {
    pack_block(plan_, env, block);
    emit_tiles(plan_, env, {block, k.add(block, k.i64(1))}, items);
  });
}

void emit_contraction(Kernel& k) {
  StageEmitter stage(k, 0);
  const auto found = view_products(k.spec.region, 0);
  OPFUSE_CHECK(std::holds_alternative<ContractionView>(found), "{}", std::get<std::string>(found));
  const ContractionEmitter emitter(k, stage, std::get<ContractionView>(found));
  emit_tiled_parts(k, stage.fresh_env(1), emitter.batch_axes(), Dim(emitter.blocks()), emitter.items(),
                   [&](const Env& env, PartRange blocks, PartRange items) { emitter.emit(env, blocks, items); });
}

}  // namespace opfuse::cpu
