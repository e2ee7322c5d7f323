// Each loop knows one thing more of the tile and hands it on.
#include "cpu/emit/contraction/walk.hpp"

#include <algorithm>

#include "base/integers.hpp"
#include "cpu/emit/contraction/policies.hpp"

namespace opfuse::cpu {
namespace {

class Walk {
 public:
  Walk(const ContractionPlan& plan, const TileBody& body) : plan_(plan), k_(plan.k), body_(body) {}

  void over_chunks(Tile tile, const Env& env, PartRange blocks, PartRange items) const {
    tile.first_block = blocks.begin;
    tile.last_block = k_.sub(blocks.end, k_.i64(1));
    const int64_t chunk = plan_.schedule.chunk;
    const Dim all = plan_.items();
    if (all.is_constant() && chunk >= *all.constant()) return over_passes(tile, env, blocks, items);
    k_.loop(items.begin, items.end, chunk, [&](Value* begin) {
      Value* end = chunk == 1 ? k_.add(begin, k_.i64(1)) : k_.min(items.end, k_.add(begin, k_.i64(chunk)));
      over_passes(tile, env, blocks, {begin, end});
    });
  }

 private:
  const ContractionPlan& plan_;
  Kernel& k_;
  const TileBody& body_;

  void over_passes(const Tile& tile, const Env& env, PartRange blocks, PartRange items) const {
    if (!plan_.schedule.k_block) return over_blocks(tile, env, blocks, items);
    k_.loop(k_.i64(0), k_.i64(plan_.passes()), 1, [&](Value* pass) {
      Tile of_pass = tile;
      of_pass.pass = pass;
      over_blocks(of_pass, env, blocks, items);
    });
  }

  void over_blocks(const Tile& tile, const Env& env, PartRange blocks, PartRange items) const {
    const auto emit = [&](const BlockForm& form, Value* begin, Value* end) {
      k_.loop(begin, end, 1, [&](Value* block) {
        Tile of_block = tile;
        of_block.form = form;
        of_block.block = block;
        at_block(of_block, env, items);
      });
    };
    const int64_t used = ceil_of(plan_.channels(), plan_.lanes), whole = (used - 1) / plan_.vectors;
    const int64_t rest = used - whole * plan_.vectors;
    if ((rest == plan_.vectors && !plan_.schedule.half) || stored_block() > plan_.lanes)
      return emit(any_block(), blocks.begin, blocks.end);
    if (whole > 0) emit({plan_.sums, plan_.vectors}, blocks.begin, k_.min(blocks.end, k_.i64(whole)));
    emit({plan_.sums, rest, Outputs::last, plan_.schedule.half != 0}, k_.max(blocks.begin, k_.i64(whole)), blocks.end);
  }

  /// Blocks of the results: their padding lanes are written too.
  int64_t stored_block() const {
    int64_t stored = 1;
    for (const Operand& o : plan_.s.outputs)
      for (const Block& b : o.layout.blocks) stored = std::max(stored, b.factor);
    return stored;
  }

  BlockForm any_block() const {
    const int64_t channels = plan_.channels();
    const Outputs ragged = channels < plan_.block ? Outputs::last : Outputs::decided;
    return {plan_.sums, plan_.vectors, channels % plan_.block == 0 ? Outputs::whole : ragged};
  }

  void at_block(Tile tile, Env env, PartRange items) const {
    Value* first = k_.mul(tile.block, k_.i64(plan_.block));
    env.axes[static_cast<size_t>(plan_.view.vec)] = {first, false, plan_.block};
    if (plan_.schedule.grouped == 2) tile.groups = groups_from(plan_, first);
    if (plan_.row_axis < 0) return over_runs(tile, env, &items);
    if (plan_.schedule.tile_h > 1) return over_stacks(tile, env, items);
    k_.loop(items.begin, items.end, 1, [&](Value* row) {
      tile.item = k_.sub(row, items.begin);
      env.axes[static_cast<size_t>(plan_.row_axis)] = {row, false, 1};
      over_runs(tile, env, nullptr);
    });
  }

  void over_stacks(Tile tile, Env env, PartRange items) const {
    for (const TileRun& run : plan_.row_runs) {
      Value* first = k_.max(items.begin, k_.i64(run.first));
      Value* last = k_.min(items.end, k_.i64(run.first + run.count));
      k_.loop(first, last, 1, [&](Value* stack) {
        tile.item = k_.sub(stack, items.begin);
        Value* row = k_.add(run.begin, k_.mul(k_.sub(stack, k_.i64(run.first)), k_.i64(run.width)));
        env.axes[static_cast<size_t>(plan_.row_axis)] = {row, false, 1};
        tile.row_run = &run;
        over_runs(tile, env, nullptr);
      });
    }
  }

  /// `items`: tiles of all runs together that are wanted; null: all.
  void over_runs(Tile tile, const Env& env, const PartRange* items) const {
    for (const TileRun& run : plan_.runs) {
      Value* begin = run.begin;
      Value* end = run.end;
      if (items && run.count && tile_count(plan_.runs) > 1) {
        Value* first = k_.max(items->begin, k_.i64(run.first));
        Value* last = k_.min(items->end, k_.i64(run.first + run.count));
        begin = k_.add(run.begin, k_.mul(k_.sub(first, k_.i64(run.first)), k_.i64(run.width)));
        end = k_.add(run.begin, k_.mul(k_.sub(last, k_.i64(run.first)), k_.i64(run.width)));
      }
      tile.run = &run;
      k_.loop(begin, end, run.width, [&](Value* pixel) {
        if (items && run.before)
          tile.item = k_.add(run.before, k_.div(k_.sub(pixel, run.begin), k_.i64(run.width)));
        else if (items)
          tile.item = k_.sub(k_.div(pixel, k_.i64(plan_.schedule.tile_w)), items->begin);
        Env at = env;
        if (plan_.view.pixel >= 0) at.axes[static_cast<size_t>(plan_.view.pixel)] = {pixel, false, 1};
        body_(tile, at);
      });
    }
  }
};

}  // namespace

void walk_tiles(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items, const TileBody& body) {
  Walk(plan, body).over_chunks({}, env, blocks, items);
}

}  // namespace opfuse::cpu
