// The epilogue of a tile between the multiply-adds of the next:
//
//   for all tiles of a part:
//     acc = 0
//     acc += first channel step; between its multiply-adds: epilogue of the sums at rest, stored where they lie
//     acc += other channels
//     the sums come to rest
//   epilogue of the sums at rest
//
// The first tile has none before it: it stores the epilogue of whatever rests there at its own place, where the next
// one stores the right results. All tiles have the same shape (overlapped_tile).

#include <algorithm>

#include "cpu/emit/contraction/epilogue.hpp"
#include "cpu/emit/contraction/fetch.hpp"
#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/contraction/walk.hpp"
#include "cpu/emit/take_turns.hpp"

namespace opfuse::cpu {
namespace {

class Overlap {
 public:
  /// The part's first tile is item `item` of block `block`.
  Overlap(const ContractionPlan& plan, Value* block, Value* item)
      : plan_(plan), k_(plan.k), block_(variable()), row_(variable()), pixel_(variable()) {
    const bool rows = plan.row_axis >= 0;
    k_.b.CreateStore(block, block_);
    k_.b.CreateStore(rows ? item : k_.i64(0), row_);
    k_.b.CreateStore(rows ? k_.i64(0) : k_.mul(item, k_.i64(plan.schedule.tile_w)), pixel_);
    for (int64_t i = 0; i < plan.schedule.tile_w * plan.vectors; ++i)
      sums_.push_back(k_.zeroed_variable(plan.product.sums));
  }

  void emit(const Tile& tile, const Env& env) const {
    if (plan_.schedule.fetch_outputs) fetch_epilogue(plan_, tile, env);
    start_sums(plan_, tile, env);
    const std::vector<StageEmitter::Point> points = points_at_rest(tile, env);
    llvm::Instruction* first = &k_.b.GetInsertBlock()->back();
    const int64_t step = plan_.schedule.step;
    Env at = env;
    at.axes[static_cast<size_t>(plan_.view.channel)] = {k_.i64(0), false, step};
    const TileProducts products(plan_, tile);
    products.add_step(at, tile.all(), step, step);
    take_turns_behind(k_, first, points.size(),
                      [&](size_t i) { plan_.s.store_resting(points[i], plan_.product.sums); });
    products.add_all(env, 1);
    for (size_t i = 0; i < points.size(); ++i)
      k_.b.CreateStore(k_.b.CreateLoad(plan_.product.sums, plan_.places[i]), sums_[i], true);
    k_.b.CreateStore(tile.block, block_);
    if (plan_.row_axis >= 0) k_.b.CreateStore(env.axes[static_cast<size_t>(plan_.row_axis)].base, row_);
    k_.b.CreateStore(env.axes[static_cast<size_t>(plan_.view.pixel)].base, pixel_);
  }

  /// Behind the last tile.
  void finish(const Env& env) const {
    Tile tile;
    tile.form = {plan_.sums, plan_.vectors};
    tile.run = &plan_.runs.front();
    const std::vector<StageEmitter::Point> points = points_at_rest(tile, env);
    take_turns(k_, points.size(), [&](size_t i) { plan_.s.store_resting(points[i], plan_.product.sums); });
  }

 private:
  const ContractionPlan& plan_;
  Kernel& k_;
  llvm::AllocaInst *const block_, *const row_, *const pixel_;  ///< where the tile at rest lies
  std::vector<llvm::AllocaInst*> sums_;

  llvm::AllocaInst* variable() const { return k_.variable(k_.b.getInt64Ty()); }

  /// Results are where the sums rest.
  std::vector<StageEmitter::Point> points_at_rest(const Tile& shape, const Env& env) const {
    const auto load = [&](llvm::AllocaInst* at) { return k_.b.CreateLoad(at->getAllocatedType(), at); };
    Env at = env;
    at.axes[static_cast<size_t>(plan_.view.pixel)] = {load(pixel_), false, 1};
    if (plan_.row_axis >= 0) at.axes[static_cast<size_t>(plan_.row_axis)] = {load(row_), false, 1};
    Tile tile = shape;
    tile.block = load(block_);
    std::vector<StageEmitter::Point> points = points_of(plan_, tile, at, false);
    for (StageEmitter::Point& point : points) {
      const auto place = std::find(plan_.places.begin(), plan_.places.end(), point.results[0]);
      point.results[0] = sums_[static_cast<size_t>(place - plan_.places.begin())];
    }
    return points;
  }
};

}  // namespace

void emit_overlapped(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items) {
  Kernel& k = plan.k;
  Value* any = k.b.CreateAnd(k.b.CreateICmpSLT(blocks.begin, blocks.end), k.b.CreateICmpSLT(items.begin, items.end));
  k.branch(any, [&] {
    const Overlap overlap(plan, blocks.begin, items.begin);
    walk_tiles(plan, env, blocks, items, [&](const Tile& tile, const Env& at) { overlap.emit(tile, at); });
    overlap.finish(env);
  });
}

}  // namespace opfuse::cpu
