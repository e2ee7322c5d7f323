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
#include "cpu/contraction/decoded_weights.hpp"
#include "cpu/emit/contraction/decode.hpp"
#include "cpu/emit/contraction/digits.hpp"
#include "cpu/emit/contraction/epilogue.hpp"
#include "cpu/emit/contraction/fetch.hpp"
#include "cpu/emit/contraction/pairs.hpp"
#include "cpu/emit/contraction/policies.hpp"
#include "cpu/emit/contraction/products.hpp"
#include "cpu/emit/contraction/walk.hpp"
#include "cpu/emit/contraction/widen_weights.hpp"
#include "cpu/emit/emitters.hpp"
#include "cpu/emit/sum_start.hpp"

namespace opfuse::cpu {
namespace {

void emit_tiles(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items) {
  for (const TileKind& kind : kTileKinds)
    if (kind.asked(plan.schedule)) return kind.emit(plan, env, blocks, items);
}

bool is(const ContractionSchedule& schedule, Decode decode) { return schedule.decode == static_cast<int64_t>(decode); }

ContractionSchedule with(ContractionSchedule schedule, Decode decode) {
  schedule.decode = static_cast<int64_t>(decode);
  return schedule;
}

ContractionSchedule of_many_rows(const Kernel& k) {
  auto schedule = typed<ContractionSchedule>(k.spec.schedule);
  if (!is(schedule, Decode::by_rows)) return schedule;
  schedule.digits = {};
  return with(schedule, Decode::into_scratch);
}

/// Of an open number of rows, where there are `rows` at most.
std::optional<ContractionPlan> of_rows(Kernel& k, StageEmitter& stage, const ContractionView& view, int bias,
                                       int64_t rows) {
  auto schedule = typed<ContractionSchedule>(k.spec.schedule);
  if (!is(schedule, Decode::by_rows) || (rows == 1 && !schedule.digits)) return std::nullopt;
  schedule = with(schedule, Decode::in_registers);
  if (rows > 1) schedule.digits = {};
  schedule.tile_w = std::min(int64_t{schedule.tile_w}, rows);
  return std::optional<ContractionPlan>(std::in_place, k, stage, view, schedule, std::nullopt, bias);
}

}  // namespace

void start_sums(const ContractionPlan& plan, const Tile& tile, const Env& env) {
  if (plan.bias >= 0) return start_with_bias(plan, tile, env);
  for (int64_t i = 0; i < tile.accumulators(); ++i)
    plan.k.b.CreateStore(plan.k.zero(plan.product.sums), plan.places[static_cast<size_t>(i)]);
}

/// Data that cannot be written as digits are multiplied as floats.
static void add_coded(const ContractionPlan& plan, const Tile& tile, const Env& env) {
  const auto as_floats = [&] { add_decoded(plan, tile, env); };
  if (!plan.schedule.digits) return as_floats();
  plan.k.branch(
      has_digits(plan), [&] { add_digits(plan, tile); }, as_floats);
}

void emit_plain(const ContractionPlan& plan, const Env& env, PartRange blocks, PartRange items) {
  walk_tiles(plan, env, blocks, items, [&](const Tile& tile, const Env& at) {
    if (plan.schedule.fetch_outputs) fetch_epilogue(plan, tile, at);
    start_sums(plan, tile, at);
    if (is(plan.schedule, Decode::in_registers))
      add_coded(plan, tile, at);
    else if (plan.schedule.paired)
      add_pairs(plan, tile, at);
    else
      TileProducts(plan, tile).add_inside(at);
    emit_epilogue(plan, tile, at);
  });
}

ContractionEmitter::ContractionEmitter(Kernel& k, StageEmitter& stage, const ContractionView& view,
                                       std::optional<PixelBand> band, int bias)
    : plan_(k, stage, view, of_many_rows(k), band, bias),
      few_rows_(of_rows(k, stage, view, bias, rows_in_registers(k.target))),
      one_row_(of_rows(k, stage, view, bias, 1)) {}

void ContractionEmitter::emit(const Env& env, PartRange blocks, PartRange items) const {
  if (!few_rows_) return emit_blocks(env, blocks, items);
  Kernel& k = plan_.k;
  Value* rows = k.dim(rows_of_product(plan_.s.stage, plan_.view));
  const auto few_or_many = [&] {
    k.branch(
        k.b.CreateICmpSLE(rows, k.i64(rows_in_registers(k.target))),
        [&] { emit_tiles(*few_rows_, env, blocks, items); }, [&] { emit_blocks(env, blocks, items); });
  };
  if (!one_row_) return few_or_many();
  k.branch(
      k.b.CreateICmpEQ(rows, k.i64(1)),
      [&] {
        write_digits(*one_row_, env);
        emit_tiles(*one_row_, env, blocks, items);
      },
      few_or_many);
}

void ContractionEmitter::emit_blocks(const Env& env, PartRange blocks, PartRange items) const {
  const bool decodes = is(plan_.schedule, Decode::into_scratch);
  if (plan_.schedule.digits) write_digits(plan_, env);
  if (!plan_.schedule.pack && !decodes) return emit_tiles(plan_, env, blocks, items);
  Kernel& k = plan_.k;
  k.loop(blocks.begin, blocks.end, 1, [&](Value* block) {
    if (widens_weights(plan_))
      widen_block(plan_, block);
    else if (decodes)
      decode_block(plan_, block);
    else
      pack_block(plan_, env, block);
    emit_tiles(plan_, env, {block, k.add(block, k.i64(1))}, items);
  });
}

void emit_contraction(Kernel& k) {
  const auto found = view_products(k.spec.region, 0);
  OPFUSE_CHECK(std::holds_alternative<ContractionView>(found), "{}", std::get<std::string>(found));
  const auto& view = std::get<ContractionView>(found);
  const Stage& whole = k.spec.region.stages[0];
  // sums in matrix registers begin with zeros
  const bool in_registers = typed<ContractionSchedule>(k.spec.schedule).matrix == 0;
  const auto start = in_registers ? start_of_sums(whole, view.vec) : std::nullopt;
  StageEmitter stage(k, start ? start->stage : whole, 0);
  const ContractionEmitter emitter(k, stage, view, {}, start ? start->bias : -1);
  emit_tiled_parts(k, stage.fresh_env(1), emitter.batch_axes(), Dim(emitter.blocks()), emitter.items(),
                   [&](const Env& env, PartRange blocks, PartRange items) { emitter.emit(env, blocks, items); });
}

}  // namespace opfuse::cpu
